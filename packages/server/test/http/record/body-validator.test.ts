import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBodyValidator } from '../../../src/http/record/body-validator.ts'

const context = { workspaceId: 'w', now: 1_800_000_000_000 }
const body = Buffer.from(
  JSON.stringify([
    { eventId: 'é', clientId: 'c', runId: 'r', agentName: 'a', eventType: 't', label: 'l', timestamp: context.now },
    { eventId: 'bad' },
  ]),
)

test('a body is judged the same on a thread as inline', async () => {
  const [direct, threaded] = [
    createBodyValidator({ directBytes: { batch: 1_000_000, telemetry: 1_000_000 } }),
    createBodyValidator({ directBytes: { batch: body.length - 1, telemetry: 0 } }),
  ]
  try {
    assert.deepEqual(
      await threaded.validateBatch(body, context),
      structuredClone(await direct.validateBatch(body, context)),
    )
    const answers = await Promise.all(Array.from({ length: 50 }, async () => threaded.validateBatch(body, context)))
    assert.ok(answers.every((judgement) => judgement.ok && judgement.batch.events.length === 1))
    const format = { signal: 'traces', encoding: 'json' } as const
    const spans = [
      { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), name: 'n'.repeat(body.length), startTimeUnixNano: '5' },
      { spanId: 7 },
    ]
    const request = Buffer.from(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans }] }] }))
    const judged = await direct.validateTelemetry(request, format, context)
    assert.deepEqual(judged.ok && judged.unreadable.map(({ reason }) => reason), [
      'its startTimeUnixNano must be nanoseconds since 1970',
      'its span_id cannot be read',
    ])
    assert.deepEqual(await threaded.validateTelemetry(request, format, context), judged)
    assert.deepEqual(await threaded.validateBatch(Buffer.from(`{${' '.repeat(body.length)}`), context), {
      ok: false,
      code: 'invalid_json',
      detail: `The body ends before its JSON is complete, at line 1, column ${body.length + 2}`,
    })
  } finally {
    await Promise.all([direct.close(), threaded.close()])
  }
})

test('workspaces take turns on the thread, however many bodies of one wait', async () => {
  const judge = createBodyValidator({ directBytes: { batch: 0, telemetry: 0 } })
  try {
    const judged: string[] = []
    const send = async (workspace: string) => {
      await judge.validateBatch(body, context, { workspace, credential: '1' })
      judged.push(workspace)
    }
    await Promise.all([...Array.from({ length: 20 }, () => send('loud')), send('quiet'), send('quiet')])
    // Two bodies of `loud` were already in the thread, and the workspaces took turns for the others.
    assert.deepEqual(
      judged.flatMap((workspace, place) => (workspace === 'quiet' ? [place] : [])),
      [3, 5],
    )
  } finally {
    await judge.close()
  }
})

test('patterns of a condition are compiled beside the requests of others', async () => {
  const judge = createBodyValidator()
  try {
    const holder = { workspace: 'w', credential: '1' }
    let [turns, isOver] = [0, false]
    const tick = () => {
      turns += 1
      if (!isOver) setImmediate(tick)
    }
    setImmediate(tick)
    const faults = await judge.conditionFaults('tool.name.matches("(?i)[\\\\x{0}-\\\\x{ffff}]") && x', holder)
    isOver = true
    assert.ok(Array.isArray(faults))
    assert.match(faults[0]?.message ?? '', /^1:48: unknown name x/)
    // If this thread had validated the body, the event loop would have had one or two turns.
    assert.ok(turns > 20, `${turns}`)
  } finally {
    await judge.close()
  }
})

test('closing rejects what still waits, and the next body starts a new thread', async () => {
  const judge = createBodyValidator({ directBytes: { batch: 0, telemetry: 0 } })
  const waiting = judge.validateBatch(body, context)
  await judge.close()
  await assert.rejects(async () => waiting)
  assert.ok((await judge.validateBatch(body, context)).ok)
  await judge.close()
})

test('a body that takes too much memory is refused; those before and behind it are judged', async () => {
  const judge = createBodyValidator({ directBytes: { batch: 0, telemetry: 0 }, heapMegabytes: 24 })
  try {
    // Within the limit of values: each becomes an object, and the thread has little memory here.
    const lists = { arrayValue: { values: Array.from({ length: 400_000 }, () => ({})) } }
    const attributes = [{ key: 'lists', value: lists }]
    const spans = [{ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), attributes, startTimeUnixNano: '5' }]
    const small = Buffer.from(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [{ spanId: 7 }] }] }] }))
    const large = Buffer.from(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans }] }] }))
    const format = { signal: 'traces', encoding: 'json' } as const
    const judged = await Promise.all(
      [small, small, large, small, large, small].map(async (each) => judge.validateTelemetry(each, format, context)),
    )
    assert.deepEqual(
      judged.map((each) => (each.ok ? 'judged' : each.code)),
      ['judged', 'judged', 'body_too_large', 'judged', 'body_too_large', 'judged'],
    )
  } finally {
    await judge.close()
  }
})
