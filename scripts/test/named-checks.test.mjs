// Checks that are chosen by name run, and a name that no check has fails: else a misspelt name would pass as green.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const SCRIPT = fileURLToPath(new URL('../test.mjs', import.meta.url))

function checked(...names) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT, '--checks', ...names], { encoding: 'utf8' })
  return { status, stdout, stderr }
}

test('a named check runs alone', () => {
  const { status, stdout } = checked('migrations')
  assert.match(stdout, /^✔ migrations \(\d+ms\)\n1 passed, 0 failed\n$/)
  assert.equal(status, 0)
})

test('an unknown name of a check fails and names the checks', () => {
  const { status, stdout, stderr } = checked('migrations', 'typos')
  assert.match(stderr, /^No check is named typos: they are lint, types, /)
  assert.match(stdout, /^0 passed, 1 failed\n$/)
  assert.equal(status, 1)
})
