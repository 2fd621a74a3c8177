// An uncaught error must fail the test that caused it, whether it comes from a timer, a promise or a socket. Tests must stay
// nested in the tests that started them.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'

const CAUSES = {
  timer: `setTimeout(() => { throw new Error('no') }, 5)`,
  rejection: `setTimeout(async () => { throw new Error('no') }, 5)`,
  immediate: `setImmediate(() => { throw new Error('no') })`,
  tick: `process.nextTick(() => { throw new Error('no') })`,
  microtask: `queueMicrotask(() => { throw new Error('no') })`,
  socket: `const server = createServer((socket) => { socket.destroy(); server.close(); throw new Error('no') }).listen(0, () => {
    connect(server.address().port).on('error', () => {}).resume() })`,
  emitter: `import('node:events').then(({ EventEmitter }) => new EventEmitter().emit('error', new Error('no')))`,
}
const HEAD = `import { describe, test } from 'node:test'
import { connect, createServer } from 'node:net'
const forever = (signal) => new Promise((resolve) => {
  const kept = setTimeout(resolve, 10_000)
  signal.addEventListener('abort', () => { clearTimeout(kept); resolve() })
})
`

test('an error fails the test that caused it, beside others that go on', { timeout: 120_000 }, (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'tacho-scope-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const inner = path.join(folder, 'inner.mjs')
  const tests = Object.entries(CAUSES).map(
    ([name, code]) => `test('${name}', async ({ signal }) => { ${code}; await forever(signal) })`,
  )
  const good = `test('good', async () => { await new Promise((resolve) => setTimeout(resolve, 50)) })`
  writeFileSync(inner, `${HEAD}describe('at once', { concurrency: 20 }, () => { ${[...tests, good].join('\n')} })`)
  const program = path.join(folder, 'outer.test.mjs')
  // Imports a test file inside a test, as test-files.mjs does.
  writeFileSync(program, `import { test } from 'node:test'; test('outer', async () => { await import('./inner.mjs') })`)

  const scope = new URL('../test-scope.mjs', import.meta.url).href
  const { NODE_TEST_CONTEXT, ...env } = process.env
  // Without this variable, the process is a separate run. With it, its reports would go to this run.
  assert.ok(NODE_TEST_CONTEXT)
  const args = [`--import=${scope}`, '--test', '--test-reporter=tap', program]
  const { stdout } = spawnSync(process.execPath, args, { env, encoding: 'utf8', timeout: 60_000 })
  const found = [...stdout.matchAll(/^( *)(not ok|ok) \d+ - (.*)$/gm)].map(([, margin = '', outcome, name]) => [
    name,
    `${outcome === 'ok' ? 'pass' : 'fail'} ${margin.length / 4}`,
  ])

  const failed = [...Object.keys(CAUSES), 'at once', 'outer']
  const nesting = (name) => ({ outer: 0, 'at once': 1 })[name] ?? 2
  assert.deepEqual(
    Object.fromEntries(found),
    Object.fromEntries([...failed.map((name) => [name, `fail ${nesting(name)}`]), ['good', 'pass 2']]),
  )
})
