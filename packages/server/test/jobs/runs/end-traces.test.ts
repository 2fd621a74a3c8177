/** Traces whose root span is sent to another system only. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../setup/eventually.ts'
import { newSpanId, newTraceId, otlpClient, PARENT, request, span, type SpanInput } from '../../setup/otlp-requests.ts'
import { startService } from '../../setup/service.ts'

const MINUTE_MS = 60_000
let later = 0
test('after a quiet time, the topmost span that was sent ends its run', async (t) => {
  const service = await startService({}, () => Date.now() + later)
  t.after(() => service.close())
  const { send, timeline } = otlpClient(() => service)
  const inTrace = (...spans: SpanInput[]) => {
    const traceId = newTraceId()
    return { traceId, sent: send(request(spans.map((one) => span({ traceId, ...one })))) }
  }
  const serverId = newSpanId()
  const server = { spanId: serverId, name: 'POST /ask', kind: 2 }
  const traces = {
    ended: inTrace(server, { parentSpanId: serverId, name: 'plan', status: { code: 2, message: 'no' } }),
    failed: inTrace({ ...server, status: { code: 2, message: 'no stock' } }),
    // The agent's span is missing, as after a kill, so the trace may go on.
    killed: inTrace({ name: 'chat', attributes: { 'gen_ai.operation.name': 'chat' } }),
    whole: inTrace({ spanId: PARENT, parentSpanId: '', name: 'root' }, { name: 'step' }),
  }
  for (const { sent } of Object.values(traces)) assert.deepEqual((await sent).body, {})
  const statuses = async () => {
    const runs = await Promise.all(Object.values(traces).map(({ traceId }) => timeline(traceId)))
    return runs.map(({ status }) => status)
  }
  assert.deepEqual(await statuses(), ['RUNNING', 'RUNNING', 'RUNNING', 'COMPLETED'])
  later = 16 * MINUTE_MS
  await eventually(async () => (await statuses())[1] !== 'RUNNING', 'the end of the trace')
  await eventually(async () => (await statuses())[0] !== 'RUNNING', 'the end of the trace')
  assert.deepEqual(await statuses(), ['COMPLETED', 'FAILED', 'RUNNING', 'COMPLETED'])
  const { events, endedAt } = await timeline(traces.failed.traceId)
  const outcome = events.find(({ eventType }) => eventType === 'SESSION_OUTCOME')
  assert.deepEqual(
    [outcome?.eventId, outcome?.payload],
    [`${serverId}-outcome`, { status: 'FAILED', error: { message: 'no stock' } }],
  )
  assert.equal(endedAt, outcome?.timestamp)
})
