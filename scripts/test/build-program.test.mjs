import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { findPackageJSON } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { EXTERNAL, removeOld, THREADS } from '../build-program.mjs'
import { root } from '../build.mjs'

test('every module that the server starts as a thread is built', () => {
  const sources = globSync('packages/server/src/**/*.ts', { cwd: root }).map((file) =>
    readFileSync(path.join(root, file), 'utf8'),
  )
  const names = sources.flatMap((text) => [...text.matchAll(/moduleUrl\('([\w-]+)'/g)].map(([, name]) => name))
  // The server starts these two through a variable, so the pattern above does not match them.
  assert.deepEqual(new Set([...names, 'writer', 'reader']), new Set(Object.keys(THREADS)))
})

test('parts of a build stay for a day after another replaced it, not a day after they were written', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'tacho-old-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const hour = 3_600_000
  const writeAt = (name, time) => {
    writeFileSync(path.join(folder, name), '')
    utimesSync(path.join(folder, name), new Date(time), new Date(time))
  }
  const first = Date.now() - 100 * hour
  writeAt('one.js', first + 1)
  writeAt('both.js', first + 1)
  const build = (before, now) => {
    writeAt('both.js', now + 1)
    removeOld(folder, ['both.js'], { before, now })
    return readdirSync(folder).toSorted()
  }
  assert.deepEqual(build(first, first + 50 * hour), ['both.js', 'one.js'])
  assert.deepEqual(build(first + 50 * hour, first + 73 * hour), ['both.js', 'one.js'])
  assert.deepEqual(build(first + 73 * hour, first + 75 * hour), ['both.js'])
})

test('of a package in CommonJS that is loaded on first use, only the default export is used: a build has no other', () => {
  const files = globSync('packages/{cli,client,contract,guards,mcp,policy,server}/src/**/*.ts', { cwd: root })
  let count = 0
  for (const file of files) {
    const text = readFileSync(path.join(root, file), 'utf8')
    for (const [line, name] of text.matchAll(/^.*import\('((?![.]|@tacho|node:)[^']+)'\).*$/gm)) {
      const manifest = findPackageJSON(name, pathToFileURL(path.join(root, file)))
      if (EXTERNAL.includes(name) || JSON.parse(readFileSync(manifest, 'utf8')).type === 'module') continue
      assert.match(line, /default: |\)\.default/, `${file}: ${line.trim()}`)
      count++
    }
  }
  assert.ok(count >= 2)
})

const SCRIPT = '#!/bin/sh\n[ "$1" = --plain ] && shift\necho "${1##*/packages/}"\n'

test('the command runs the build, unless a source was changed or deleted after it, or nothing was built', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'tacho-program-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const at = (file) => path.join(folder, file)
  const write = (file, text, mode) => {
    mkdirSync(path.dirname(at(file)), { recursive: true })
    writeFileSync(at(file), text, { mode })
  }
  const program = 'packages/cli/bin/tacho'
  const [source, other, main] = [
    'packages/cli/src/main.ts',
    'packages/server/src/http/a.ts',
    'packages/cli/dist/main.js',
  ]
  const more = ['package.json', 'package-lock.json', 'packages/server/package.json', 'scripts/build-program.mjs']
  const ofHook = ['guards/src/hook/main.ts', 'sdk/src/a.ts', 'policy/src/a.ts'].map((file) => `packages/${file}`)
  for (const file of [source, other, ...more, ...ofHook]) write(file, '')
  write('scripts/node', SCRIPT, 0o755)
  mkdirSync(path.dirname(at(program)), { recursive: true })
  copyFileSync(path.join(root, program), at(program))
  const runs = (...args) => execFileSync(at(program), args, { encoding: 'utf8' }).trim()
  const age = (seconds, file) => utimesSync(at(file), Date.now() / 1000 - seconds, Date.now() / 1000 - seconds)
  const ageAll = () => {
    for (const file of globSync(['packages/**', ...more], { cwd: folder })) age(100, file)
  }

  ageAll()
  assert.equal(runs('serve'), 'cli/src/main.ts')
  assert.equal(runs('hook', 'codex'), 'guards/src/hook/main.ts')
  write(main, '')
  write('packages/cli/dist/hook.cjs', '')
  ageAll()
  age(50, main)
  assert.equal(runs('serve'), 'cli/dist/main.js')
  assert.equal(runs('hook', 'codex'), 'cli/dist/hook.cjs')
  for (const file of [other, ...more]) {
    age(10, file)
    assert.equal(runs('serve'), 'cli/src/main.ts', file)
    ageAll()
    age(50, main)
    assert.equal(runs('serve'), 'cli/dist/main.js', file)
  }
  // V8 flags make V8 compile Node's own code again, so only long-running commands get them; the others run with --plain.
  write('scripts/node', '#!/bin/sh\necho "$1"\n', 0o755)
  assert.equal(runs('runs', 'list'), '--plain')
  for (const command of ['serve', 'gateway', 'record']) assert.notEqual(runs(command), '--plain', command)
  write('scripts/node', SCRIPT, 0o755)
  // A hook compares only its own files with the build, because an agent waits for it.
  for (const file of [...ofHook, 'package.json', 'package-lock.json']) {
    age(10, file)
    assert.equal(runs('hook', 'codex'), 'guards/src/hook/main.ts', file)
    ageAll()
    age(50, main)
    assert.equal(runs('hook', 'codex'), 'cli/dist/hook.cjs', file)
  }
  age(10, other)
  assert.equal(runs('hook', 'codex'), 'cli/dist/hook.cjs')
  ageAll()
  age(50, main)
  rmSync(at(other))
  assert.equal(runs('serve'), 'cli/src/main.ts')
  // An installed package has no sources; its other files get the time of the installation.
  rmSync(at('packages/cli/src'), { recursive: true })
  assert.equal(runs('serve'), 'cli/dist/main.js')
})
