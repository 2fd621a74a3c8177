/** The SDK with a real service: the service rejects nothing, and every event can be read. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { anyCharacter } from '../../contract/test/any-character.ts'
import { API_KEY, startServer, type TestServer } from '../../cli/test/tacho.ts'
import { Tacho } from '../src/index.ts'
import { assertBalanced } from './balance.ts'

let server: TestServer
before(async () => {
  server = await startServer()
})
after(() => server.stop())

function client() {
  const codes: string[] = []
  return {
    codes,
    tacho: new Tacho({ apiKey: API_KEY, baseUrl: server.url, onDiagnostic: ({ code }) => codes.push(code) }),
  }
}

async function read(path: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${server.url}/openapi/v1${path}`, { headers: { 'x-api-key': API_KEY } })
  assert.equal(response.status, 200)
  return (await response.json()) as Record<string, unknown>
}

test('a run is recorded with its usage, spans and outcome', async () => {
  const { tacho } = client()
  await tacho.run({ runId: 'whole', agentName: 'assistant', sessionId: 's' }, async (run) => {
    run.userInput('Hello')
    await run.span('think', async () => {
      run.llmCall({ model: 'm', cost: 0.25, usage: { promptTokens: 7, completionTokens: 5 }, output: 'Hi' })
    })
  })
  await tacho.shutdown(30_000)
  assert.equal(tacho.counters().accepted, 4)
  const { status, usage, events } = (await read('/runs/whole')) as {
    status: string
    usage: object
    events: { eventType: string; spanId: string; parentSpanId: string | null }[]
  }
  assert.equal(status, 'COMPLETED')
  assert.deepEqual(usage, { promptTokens: 7, completionTokens: 5, totalTokens: 12, cost: 0.25 })
  const of = (type: string) => events.find(({ eventType }) => eventType === type)
  assert.equal(of('LLM_CALL')?.spanId, of('AGENT_STEP')?.spanId)
  assert.equal(of('AGENT_STEP')?.parentSpanId, of('USER_INPUT')?.spanId)
})

test('the service rejects no event, whatever values the host records', async () => {
  const { tacho, codes } = client()
  const text = fc.string({ unit: anyCharacter, maxLength: 1_500 })
  const event = fc.tuple(text, text, fc.anything({ withBigInt: true, withDate: true, withMap: true }))
  const scope = fc.record({ runId: text, sessionId: text, agentId: text, agentName: text }, { requiredKeys: [] })
  const nested = (levels: number): unknown => (levels === 0 ? 'end' : [nested(levels - 1)])
  for (const [options, events] of fc.sample(fc.tuple(scope, fc.array(event, { maxLength: 5 })), 60)) {
    const run = tacho.startRun(options)
    for (const [type, label, payload] of events)
      run.record({ type, label, payload: payload as Record<string, unknown> })
  }
  const run = tacho.startRun({ runId: 'hostile' })
  run.record({ type: 'DEEP', label: 'deep', payload: { nested: nested(500) } })
  run.record({ type: 'LARGE', label: 'large', payload: { text: '\u0001"é😀'.repeat(200_000) } })
  run.record({ type: 'HALF', label: 'half', payload: { text: '\ud800', 'key\udfff': '\0' } })
  const { rejected, dropped, left } = await tacho.shutdown(60_000)
  assert.deepEqual({ rejected, dropped, left }, { rejected: 0, dropped: 0, left: 0 })
  assert.ok(!codes.includes('event_rejected'))
  assertBalanced(tacho)
  const { events } = (await read('/runs/hostile')) as {
    events: { eventType: string; payload: Record<string, unknown> }[]
  }
  const large = events.find(({ eventType }) => eventType === 'LARGE')
  assert.ok('tachoShortened' in (large?.payload ?? {}))
})
