import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Tacho } from '../src/index.ts'
import { startScriptedServer } from './scripted-server.ts'

test('a run records its events, spans and outcome in order', async (t) => {
  const server = await startScriptedServer()
  t.after(server.close)
  const tacho = new Tacho({ apiKey: 'tacho_key', baseUrl: server.url, clientId: 'test' })
  const result = await tacho.run({ agentName: 'assistant', sessionId: 's1' }, async (run) => {
    run.userInput('Where is my order?')
    await run.span('look up', async () => {
      run.toolCall({ toolName: 'orders', input: { id: 7 } })
    })
    return 'done'
  })
  assert.equal(result, 'done')
  assert.deepEqual(await tacho.flush(), { sent: 4, rejected: 0, dropped: 0, left: 0 })
  const [input, tool, step, outcome] = server.events()
  assert.deepEqual(
    [input?.eventType, tool?.eventType, outcome?.eventType],
    ['USER_INPUT', 'TOOL_CALL', 'SESSION_OUTCOME'],
  )
  assert.equal(tool?.parentSpanId, input?.spanId)
  assert.deepEqual([step?.spanId, step?.label], [tool?.spanId, 'look up'])
  assert.deepEqual(outcome?.payload, { status: 'COMPLETED' })
  assert.equal(server.batches[0]?.headers['x-api-key'], 'tacho_key')
  assert.equal(tacho.counters().accepted, 4)
})

test('every record call reads at most as many keys as a payload can hold', () => {
  const tacho = new Tacho({ apiKey: 'tacho_key', baseUrl: 'http://127.0.0.1:9', onDiagnostic: () => undefined })
  const keys = Array.from({ length: 200_000 }, (_, n) => `k${n}`)
  let reads = 0
  const many = new Proxy<Record<string, unknown>>(
    {},
    {
      ownKeys: () => keys,
      getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 1 }),
      get: (_, key) => (typeof key === 'symbol' || key === 'toJSON' || key === 'error' ? undefined : (reads++, 1)),
    },
  )
  const run = tacho.startRun()
  const calls = {
    userInput: () => run.userInput('hello', many),
    error: () => run.error(new Error('no'), many),
    span: () => run.span('look up', () => 1, many),
    end: () => run.end('COMPLETED', many),
    annotate: () => run.annotate(many),
  }
  for (const [name, call] of Object.entries(calls)) {
    reads = 0
    call()
    assert.ok(reads < 100_000, `${name} read ${reads} keys`)
  }
})
