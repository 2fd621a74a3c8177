import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { payloadText, type NewEvent } from '../../../src/storage/record/events.ts'
import { batchResult, validateBatch, type ValidatedBatch } from '../../../src/domain/record/event.ts'

const NOW = 1_800_000_000_000
const good = {
  eventId: 'e1',
  clientId: 'c1',
  runId: 'r1',
  agentName: 'agent',
  eventType: 'TOOL_CALL',
  label: 'lookup',
  timestamp: NOW,
}

function judged(...items: unknown[]): ValidatedBatch {
  return judgedText(JSON.stringify(items))
}

function judgedText(text: string): ValidatedBatch {
  const judgement = validateBatch(Buffer.from(text), { workspaceId: 'w1', now: NOW })
  assert.ok(judgement.ok)
  return judgement.batch
}

const payloadOf = (event?: NewEvent) => event && payloadText(event.payload)
const codeOf = (change: object) => judged({ ...good, ...change }).rejections[0]?.code
const emoji = (count: number) => '😀'.repeat(count)

test('the envelope is a JSON array of 1 to 100 items', () => {
  const refused = (text: string) => {
    const judgement = validateBatch(Buffer.from(text), { workspaceId: 'w1', now: NOW })
    return judgement.ok ? null : judgement.code
  }
  assert.equal(refused('{'), 'invalid_json')
  assert.equal(refused(''), 'invalid_json')
  assert.equal(refused('{}'), 'invalid_request')
  assert.equal(refused('[]'), 'invalid_request')
  assert.equal(refused('"text"'), 'invalid_request')
  assert.equal(refused(JSON.stringify(Array(100).fill(good))), null)
  assert.equal(refused(JSON.stringify(Array(101).fill(good))), 'invalid_request')
  assert.equal(refused('['.repeat(50_000) + ']'.repeat(50_000)), null)
})

test('each length is counted in code points, at the limit and one past it', () => {
  const limits = {
    eventId: 160,
    clientId: 120,
    runId: 255,
    eventType: 50,
    label: 255,
    agentName: 1_024,
    agentId: 1_024,
    sessionId: 1_024,
    schemaVersion: 1_024,
  }
  for (const [field, chars] of Object.entries(limits)) {
    assert.equal(codeOf({ [field]: emoji(chars) }), undefined, field)
    assert.equal(codeOf({ [field]: emoji(chars + 1) }), 'too_long', field)
  }
})

test('a span id has at most 1,024 code points; a longer one is dropped without an error', () => {
  const fits = emoji(1_024)
  const [event] = judged({ ...good, spanId: fits, parentSpanId: fits }).events
  assert.deepEqual([event?.spanId, event?.parentSpanId], [fits, fits])
  const batch = judged({ ...good, spanId: `${fits}x`, payload: { parentSpanId: `${fits}x` } })
  assert.deepEqual(batch.rejections, [])
  assert.deepEqual([batch.events[0]?.spanId, batch.events[0]?.parentSpanId], [null, null])
})

test('ids are non-empty, other texts may be empty', () => {
  for (const field of ['eventId', 'clientId', 'runId']) assert.equal(codeOf({ [field]: '' }), 'empty')
  assert.equal(codeOf({ label: '', eventType: '', agentName: '', sessionId: '' }), undefined)
})

test('required fields are required, optional ones may be null', () => {
  for (const field of Object.keys(good)) assert.equal(codeOf({ [field]: undefined }), 'missing_field', field)
  const optional = {
    sessionId: null,
    agentId: null,
    payload: null,
    schemaVersion: null,
    workspaceId: null,
    spanId: null,
  }
  assert.equal(codeOf(optional), undefined)
  assert.equal(judged({ ...good, ...optional }).events[0]?.payload, '{}')
})

test('a timestamp is an integer from 30 days ago to 5 minutes ahead', () => {
  assert.equal(codeOf({ timestamp: NOW + LIMITS.eventFutureMs }), undefined)
  assert.equal(codeOf({ timestamp: NOW + LIMITS.eventFutureMs + 1 }), 'timestamp_too_new')
  assert.equal(judged({ ...good, timestamp: NOW - LIMITS.eventPastMs }).events[0]?.onlyIfStored, false)
  assert.equal(judged({ ...good, timestamp: NOW - LIMITS.eventPastMs - 1 }).events[0]?.onlyIfStored, true)
  for (const bad of [String(NOW), NOW + 0.5, null, true]) assert.equal(codeOf({ timestamp: bad }), 'invalid_type')
  assert.equal(codeOf({ timestamp: 1e300 }), 'timestamp_too_new')
})

test('an event that is too old and has another fault is rejected at once', () => {
  assert.equal(codeOf({ timestamp: 1, workspaceId: 'other' }), 'workspace_mismatch')
})

test('texts with NUL or lone surrogates are rejected, in payloads they are kept', () => {
  for (const field of ['eventId', 'clientId', 'runId', 'sessionId', 'agentId', 'agentName', 'eventType', 'label']) {
    for (const text of ['a\0', '\ud800', '\udc00a']) assert.equal(codeOf({ [field]: text }), 'invalid_text', field)
  }
  const payload = String.raw`{"nul":"\u0000","lone":"\ud800"}`
  const [event] = judgedText(
    `[${JSON.stringify({ ...good, payload: 1 }).replace('"payload":1', `"payload":${payload}`)}]`,
  ).events
  assert.equal(payloadOf(event), payload)
})

test('a payload is the bytes that were sent, whatever characters stand around it', () => {
  const around = ['a', 'ä', '€', '😀', String.raw`\u0041`]
  const texts = around.map((text, index) => `{ "${text}" : [${index}, 1.0, "${text}"] }`)
  const items = texts.map((payload, index) =>
    JSON.stringify({ ...good, eventId: `e${index}`, label: around[index], payload: 0 }).replace(
      '"payload":0',
      `"${around[index]}":"${around[index]}", "p\\u0061yload" : ${payload} `,
    ),
  )
  for (const chosen of [items, items.slice(0, 1)]) {
    const { events } = judgedText(`[${chosen.join(' , ')}]`)
    assert.deepEqual(events.map(payloadOf), texts.slice(0, chosen.length))
  }
})

test('a payload is an object of at most 256 KiB of UTF-8 as sent', () => {
  for (const bad of [[], 'text', 1, true]) assert.equal(codeOf({ payload: bad }), 'invalid_type')
  const sized = (bytes: number, char: string) => {
    const frame = '{"t":""}'.length
    const width = Buffer.byteLength(char)
    return { payload: { t: char.repeat(Math.floor((bytes - frame) / width)) + 'x'.repeat((bytes - frame) % width) } }
  }
  for (const char of ['x', 'é', '😀']) {
    assert.equal(codeOf(sized(LIMITS.payloadBytes, char)), undefined, char)
    assert.equal(codeOf(sized(LIMITS.payloadBytes + 1, char)), 'payload_too_large', char)
  }
})

test('a payload may be nested 200 levels deep', () => {
  const nested = (levels: number) => `{"a":`.repeat(levels - 1) + '{}' + '}'.repeat(levels - 1)
  const code = (levels: number) =>
    judgedText(`[${JSON.stringify(good).slice(0, -1)},"payload":${nested(levels)}}]`).rejections[0]?.code
  assert.equal(code(200), undefined)
  assert.equal(code(201), 'payload_too_deep')
  assert.equal(code(40_000), 'payload_too_deep')
})

test('the workspace hint must be the workspace of the key', () => {
  assert.equal(codeOf({ workspaceId: 'w1' }), undefined)
  assert.equal(codeOf({ workspaceId: 'w2' }), 'workspace_mismatch')
})

test('span ids are read at the top or in the payload, and never fail an event', () => {
  const spans = (change: object) => {
    const [event] = judged({ ...good, ...change }).events
    return [event?.spanId, event?.parentSpanId]
  }
  assert.deepEqual(spans({ spanId: 'a', payload: { spanId: 'b', parentSpanId: 'c' } }), ['a', 'c'])
  assert.deepEqual(spans({ spanId: 7, parentSpanId: {}, payload: { spanId: 'b', parentSpanId: 1 } }), ['b', null])
  assert.deepEqual(spans({ spanId: 'a\0' }), [null, null])
})

test('every item is judged separately, and the valid ones are kept', () => {
  const batch = judged(
    good,
    null,
    1,
    [],
    { ...good, label: 5 },
    { ...good, eventId: 'e2' },
    { eventId: 'x' },
    { eventId: 3 },
  )
  assert.deepEqual(batch.indexes, [0, 5])
  assert.deepEqual(
    batch.rejections.map(({ index, eventId, code }) => [index, eventId, code]),
    [
      [1, null, 'not_an_object'],
      [2, null, 'not_an_object'],
      [3, null, 'not_an_object'],
      [4, 'e1', 'invalid_type'],
      [6, 'x', 'missing_field'],
      [7, null, 'missing_field'],
    ],
  )
})

test('rejections that name a run and an event are kept for the doctor', () => {
  const batch = judged(
    { ...good, label: 5 },
    { eventId: 'x' },
    { ...good, runId: 'a\0', label: 1 },
    { ...good, runId: '' },
  )
  assert.deepEqual(batch.refused, [
    { runId: 'r1', eventId: 'e1', code: 'invalid_type', message: 'label must be a string', rejectedAt: NOW },
  ])
})

test('the answer counts events that are stored, now or before, and names the rest', () => {
  const batch = judged(good, { ...good, eventId: 'e2', timestamp: 1 }, { ...good, eventId: 'e3', label: 1 }, {})
  assert.deepEqual(batchResult(batch, ['stored', 'absent']), {
    success: false,
    accepted: 1,
    retryableEventIds: [],
    rejectedEventIds: ['e2', 'e3'],
    rejections: [
      {
        index: 1,
        eventId: 'e2',
        code: 'timestamp_too_old',
        message: 'timestamp is 1970-01-01T00:00:00.001Z: send milliseconds since 1970, not seconds',
      },
      { index: 2, eventId: 'e3', code: 'invalid_type', message: 'label must be a string' },
      { index: 3, eventId: null, code: 'missing_field', message: batch.rejections[1]?.message },
    ],
  })
  assert.equal(batchResult(judged(good, good), ['stored', 'duplicate']).success, true)
  assert.equal(batchResult(judged(good, good), ['stored', 'duplicate']).accepted, 2)
})

test('a rejected id is in rejectedEventIds, whole and once; an overlong one is only there', () => {
  const idOf = (chars: number) => `${'😀'.repeat(chars - 1)}!`
  const shown = idOf(LIMITS.textChars)
  const overlong = idOf(LIMITS.textChars + 1)
  const huge = 'x'.repeat(900_000)
  const batch = judged({ ...good, eventId: shown }, { ...good, eventId: overlong }, { ...good, eventId: huge })
  const result = batchResult(batch, [])
  assert.deepEqual(result.rejectedEventIds, [shown, overlong, huge])
  assert.deepEqual(
    result.rejections.map(({ index, eventId, code }) => [index, eventId, code]),
    [
      [0, shown, 'too_long'],
      [1, null, 'too_long'],
      [2, null, 'too_long'],
    ],
  )
  assert.ok(JSON.stringify(result).length < 1_000_000)
})

test('when nothing can be stored, valid events are retryable and invalid ones stay rejected', () => {
  const batch = judged(good, { ...good, eventId: 'e2', label: 1 })
  const result = batchResult(batch, null)
  assert.deepEqual(result.retryableEventIds, ['e1'])
  assert.deepEqual(result.rejectedEventIds, ['e2'])
  assert.deepEqual([result.success, result.accepted], [false, 0])
})

test('of several verdicts on one id, retryable beats rejected beats accepted', () => {
  const batch = judged(good, { ...good, label: 1 }, { ...good, eventId: 'e2' })
  const stored = batchResult(batch, ['stored', 'stored'])
  assert.deepEqual([stored.accepted, stored.rejectedEventIds, stored.retryableEventIds], [1, ['e1'], []])
  const failed = batchResult(batch, null)
  assert.deepEqual([failed.accepted, failed.rejectedEventIds, failed.retryableEventIds], [0, [], ['e1', 'e2']])
})

test('a rejected timestamp is shown as a time, with its unit', () => {
  const messageOf = (timestamp: unknown) => {
    const batch = judged({ ...good, timestamp })
    return batchResult(batch, ['absent']).rejections[0]?.message
  }
  const day = 24 * 60 * 60 * 1000
  const unit = 'timestamp must be a whole number of milliseconds since 1970'
  for (const [timestamp, message] of [
    [NOW / 1000, 'timestamp is 1970-01-21T20:00:00.000Z: send milliseconds since 1970, not seconds'],
    [NOW - 31 * day, 'timestamp is 2026-12-15T08:00:00.000Z, more than 30 days in the past'],
    [-1, 'timestamp is 1969-12-31T23:59:59.999Z, more than 30 days in the past'],
    [NOW + day, 'timestamp is 2027-01-16T08:00:00.000Z, more than 5 minutes in the future'],
    [NOW * 1000, 'timestamp is +059009-09-24T08:00:00.000Z: send milliseconds since 1970'],
    [9_007_199_254_740_991, 'timestamp 9007199254740991 is not a date: send milliseconds since 1970'],
    ['2026-01-01T00:00:00Z', unit],
    [1.5, unit],
    [null, unit],
    [undefined, 'timestamp is missing'],
  ] as const) {
    assert.equal(messageOf(timestamp), message)
  }
})

test('a rejection names every invalid field', () => {
  const { runId, ...rest } = good
  const [rejection] = judged({ ...rest, eventId: '', label: 'x'.repeat(256) }).rejections
  assert.equal(runId, 'r1')
  assert.equal(
    rejection?.message,
    'runId is missing; eventId must have 1 to 160 characters; label must have at most 255 characters',
  )
})
