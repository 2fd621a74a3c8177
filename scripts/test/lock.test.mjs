import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { root } from '../build.mjs'

/** Runs the script in a repository whose lock has these packages. Returns `--check` before and after it, and the new lock. */
function completed(t, packages) {
  const folder = mkdtempSync(path.join(tmpdir(), 'tacho-lock-'))
  t.after(() => rmSync(folder, { recursive: true }))
  mkdirSync(path.join(folder, 'scripts/pinned-node'), { recursive: true })
  copyFileSync(path.join(root, 'scripts/lock.mjs'), path.join(folder, 'scripts/lock.mjs'))
  const file = path.join(folder, 'package-lock.json')
  writeFileSync(file, JSON.stringify({ packages }))
  writeFileSync(path.join(folder, 'scripts/pinned-node/package-lock.json'), JSON.stringify({ packages: {} }))
  const run = (...args) =>
    spawnSync(process.execPath, [path.join(folder, 'scripts/lock.mjs'), ...args], { encoding: 'utf8' })
  const before = run('--check')
  run()
  const after = run('--check')
  return { before, after, packages: JSON.parse(readFileSync(file, 'utf8')).packages }
}

test('each package names its file in the public registry, whichever registry it came from', (t) => {
  const integrity = 'sha512-AA=='
  const mirrored = { version: '1.2.3', resolved: 'https://mirror.example/npm/a-1.2.3.tgz', integrity }
  const { before, after, packages } = completed(t, {
    'node_modules/a': mirrored,
    'node_modules/b/node_modules/@scope/c': { version: '2.0.0', integrity, dev: true },
    'node_modules/alias': { name: '@other/d', version: '3.0.0', integrity },
    'node_modules/@tacho/sdk': { resolved: 'packages/sdk', link: true },
    'node_modules/elsewhere': { version: '1.0.0', optional: true, os: ['aix'] },
  })
  assert.equal(before.status, 1)
  assert.match(before.stderr, /node_modules\/a does not name its file in the public registry/)
  assert.equal(after.status, 0, after.stderr)
  const files = Object.fromEntries(Object.entries(packages).map(([where, { resolved }]) => [where, resolved]))
  assert.deepEqual(files, {
    'node_modules/@tacho/sdk': 'packages/sdk',
    'node_modules/a': 'https://registry.npmjs.org/a/-/a-1.2.3.tgz',
    'node_modules/alias': 'https://registry.npmjs.org/@other/d/-/d-3.0.0.tgz',
    'node_modules/b/node_modules/@scope/c': 'https://registry.npmjs.org/@scope/c/-/c-2.0.0.tgz',
    'node_modules/elsewhere': undefined,
  })
  assert.deepEqual(Object.keys(packages['node_modules/a']), ['version', 'resolved', 'integrity'])
})
