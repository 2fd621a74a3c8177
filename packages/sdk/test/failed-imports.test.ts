/** Files of the package whose first import fails, for example because too many files are open. */
import assert from 'node:assert/strict'
import { registerHooks } from 'node:module'
import { test } from 'node:test'
import { Tacho, ToolBlockedError } from '../src/index.ts'
import { startScriptedServer } from './scripted-server.ts'

/** Modules whose next import fails. */
const failing = new Set<string>()
registerHooks({
  resolve(specifier, context, next) {
    if (failing.delete(specifier)) throw Object.assign(new Error('too many open files'), { code: 'EMFILE' })
    return next(specifier, context)
  },
})

test('a batch whose sender could not be loaded is sent with the next try', async (t) => {
  const server = await startScriptedServer()
  t.after(server.close)
  const codes: string[] = []
  const tacho = new Tacho({ apiKey: 'key', baseUrl: server.url, onDiagnostic: ({ code }) => codes.push(code) })
  failing.add('./delivery/delivery.ts')
  await tacho.run((run) => run.step('one'))
  const { sent, left, dropped } = await tacho.shutdown(30_000)
  assert.equal(failing.size, 0)
  assert.deepEqual({ sent, left, dropped }, { sent: 2, left: 0, dropped: 0 })
})

for (const part of ['./control.ts', './policies.ts']) {
  test(`a guarded tool does not run while ${part} cannot be loaded, and runs afterwards`, async (t) => {
    const server = await startScriptedServer()
    t.after(server.close)
    const tacho = new Tacho({ apiKey: 'key', baseUrl: server.url, onDiagnostic: () => undefined })
    t.after(() => tacho.shutdown(0))
    let ran = 0
    const tool = tacho.guard(() => ++ran, { name: 'tool', whenUnconfigured: 'allow', configurationWaitMs: 1 })
    failing.add(part)
    await assert.rejects(tool(), (error) => error instanceof ToolBlockedError && error.code === 'guard_failed')
    assert.equal(ran, 0)
    assert.equal(await tool(), 1)
  })
}
