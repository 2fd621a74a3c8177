import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { IMPORT_HEADER } from '@tacho/contract/engine/words.ts'
import { event, startService, type BatchResult, type RunDetail, type Service } from '../../setup/service.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const sent = (body: unknown, headers: Record<string, string> = {}) => service.api('/events/batch', { body, headers })
const timeline = async (runId: string) => (await service.api<RunDetail>(`/runs/${encodeURIComponent(runId)}`)).body

test('what of accepted events was not understood is told, at most 100 times, and nothing else', async () => {
  const runId = 'warned'
  const call = (usage: unknown, more: object = {}) =>
    event({ runId, eventType: 'LLM_CALL', payload: { usage }, ...more })
  const fine = await service.record([call({ input_tokens: 3, output_tokens: 4 })])
  assert.equal('warnings' in fine.body, false)
  const [bad, unstored] = [call({ amount: 5 }), call({ amount: 6 }, { label: 'x'.repeat(256) })]
  const { body } = await service.record([call(null), unstored, bad])
  const message =
    'payload/usage must have one of promptTokens, prompt_tokens, inputTokens, input_tokens, completionTokens, ' +
    'completion_tokens, outputTokens, output_tokens, totalTokens, total_tokens'
  assert.deepEqual(body.warnings, [{ index: 2, eventId: bad.eventId, code: 'usage_not_counted', message }])
  const many = Array.from({ length: 100 }, () =>
    event({ runId, eventType: 'LLM_CALL', payload: { usage: 1, cost: 'x' } }),
  )
  const told = (await service.record(many)).body
  assert.deepEqual([told.success, told.warnings?.length], [true, 100])
  const run = await service.api(`/runs/${runId}`)
  assert.equal((run.body as { usage: { totalTokens: number } }).usage.totalTokens, 7)
})

test('a batch is answered 200 with the verdict of every event', async () => {
  const { status, body } = await service.record([event({ runId: 'verdicts' }), event({ runId: 'verdicts' })])
  assert.equal(status, 200)
  assert.deepEqual(body, { success: true, accepted: 2, retryableEventIds: [], rejectedEventIds: [], rejections: [] })
})

test('what was acknowledged can be read at once', async () => {
  for (let index = 0; index < 20; index++) {
    await service.record([event({ runId: `read-at-once-${index}` })])
    assert.equal((await timeline(`read-at-once-${index}`)).events.length, 1)
  }
})

test('invalid events are rejected with a reason, the valid ones of the batch are stored', async () => {
  const { status, body } = await service.record([
    event({ runId: 'partial' }),
    event({ runId: 'partial', label: 7, eventId: 'bad-label' }),
    'no event',
    event({ runId: 'partial' }),
  ])
  assert.equal(status, 200)
  assert.deepEqual([body.success, body.accepted, body.rejectedEventIds], [false, 2, ['bad-label']])
  assert.deepEqual(
    body.rejections.map(({ index, eventId, code }) => [index, eventId, code]),
    [
      [1, 'bad-label', 'invalid_type'],
      [2, null, 'not_an_object'],
    ],
  )
  assert.equal((await timeline('partial')).events.length, 2)
})

test('a repeated event counts as accepted and is stored once, in the same batch too', async () => {
  const once = event({ runId: 'retries' })
  assert.equal((await service.record([once, once])).body.accepted, 2)
  const again = await service.record([once, { ...once, label: 'another body' }])
  assert.deepEqual([again.body.success, again.body.accepted], [true, 2])
  const { events } = await timeline('retries')
  assert.deepEqual(
    events.map(({ label }) => label),
    ['step'],
  )
})

test('concurrent retries of the same batch store and count each event once', async () => {
  const usage = { promptTokens: 3, completionTokens: 4 }
  const call = { runId: 'race', eventType: 'LLM_CALL', payload: { usage, cost: 0.25 } }
  const batch = Array.from({ length: 20 }, () => event(call))
  const answers = await Promise.all(Array.from({ length: 12 }, () => service.record(batch)))
  for (const { body } of answers) assert.equal(body.accepted, 20)
  const run = await timeline('race')
  assert.equal(run.events.length, 20)
  assert.deepEqual(run.usage, { promptTokens: 60, completionTokens: 80, totalTokens: 140, cost: 5 })
})

test('the same eventId under another run is another event', async () => {
  const eventId = 'same-id'
  const { body } = await service.record([event({ eventId, runId: 'one' }), event({ eventId, runId: 'other' })])
  assert.equal(body.accepted, 2)
  assert.equal((await timeline('one')).events.length, 1)
  assert.equal((await timeline('other')).events.length, 1)
})

test('a batch has 1 to 100 events', async () => {
  const batch = (size: number) => Array.from({ length: size }, () => event({ runId: 'sizes' }))
  assert.equal((await sent([])).status, 400)
  assert.equal((await sent(batch(LIMITS.batchEvents))).status, 200)
  assert.equal((await sent(batch(LIMITS.batchEvents + 1))).status, 400)
  assert.equal((await sent(batch(1000))).status, 400)
})

test('a body that is not a JSON array of events is rejected as a whole', async () => {
  const bodies = ['{', '', '{}', 'null', '"text"', '[1', '[{}] x', JSON.stringify(event()), '{"a":'.repeat(50_000)]
  for (const body of bodies) {
    const answer = await service.api<{ code: string }>('/events/batch', { method: 'POST', body })
    assert.equal(answer.status, 400, body.slice(0, 20))
    assert.match(answer.body.code, /^invalid_(json|request)$/)
  }
  assert.equal((await sent('['.repeat(50_000) + ']'.repeat(50_000))).status, 200)
})

test('the whole body has at most 1 MiB, however it is sent', async () => {
  const sized = (bytes: number) => {
    const text = JSON.stringify([event({ runId: 'large' })])
    return text.slice(0, -1) + ' '.repeat(bytes - text.length) + ']'
  }
  assert.equal((await sent(sized(LIMITS.batchBytes))).status, 200)
  assert.equal((await sent(sized(LIMITS.batchBytes + 1))).status, 413)
  assert.equal((await sent(sized(5 * LIMITS.batchBytes))).status, 413)
  for (const [encoding, compress] of Object.entries({
    gzip: gzipSync,
    deflate: deflateSync,
    br: brotliCompressSync,
    zstd: zstdCompressSync,
  })) {
    const headers = { 'content-encoding': encoding }
    assert.equal((await sent(compress(sized(LIMITS.batchBytes)), headers)).status, 200, encoding)
    assert.equal((await sent(compress(sized(LIMITS.batchBytes + 1)), headers)).status, 413, encoding)
  }
})

test('a payload is returned as the exact text sent', async () => {
  const payload = String.raw`{"10":1,"2":9007199254740993,"f":1.0,"z":-0,"d":1,"d":2,"__proto__":{"x":1},"u":"\u0041\ud800\u0000", "s": [ ] }`
  const text = JSON.stringify([event({ runId: 'verbatim', payload: 'HERE' })]).replace('"HERE"', payload)
  assert.equal((await service.api('/events/batch', { body: text })).status, 200)
  for (const path of ['/runs/verbatim', '/runs/verbatim/events']) {
    assert.ok((await service.api(path)).text.includes(`"payload":${payload}}`), path)
  }
})

test('an event older than 30 days is accepted only if it is already stored', async () => {
  let now = Date.now()
  const aged = await startService({}, () => now)
  try {
    const stored = event({ runId: 'age', timestamp: now - LIMITS.eventPastMs })
    assert.equal((await aged.record([stored])).body.accepted, 1)
    now += 1
    const absent = [
      { ...stored, eventId: 'too-old' },
      { ...stored, eventId: 'too-old-alone', runId: 'never-seen' },
    ]
    const { body } = await aged.record([stored, ...absent])
    assert.deepEqual([body.accepted, body.rejectedEventIds], [1, ['too-old', 'too-old-alone']])
    assert.ok(body.rejections.every(({ code }) => code === 'timestamp_too_old'))
    assert.equal((await aged.api('/runs/never-seen')).status, 404)
  } finally {
    await aged.close()
  }
})

test('an import has events of any age, but not in a run that was recorded live', async () => {
  const headers = { [IMPORT_HEADER]: 'true' }
  const record = (events: object[]) => service.api<BatchResult>('/events/batch', { body: events, headers })
  const old = (runId: string, days: number) => event({ runId, timestamp: Date.now() - days * 86_400_000 })
  const live = event({ runId: 'live' })
  await service.record([live])
  const { body } = await record([old('live', 400), old('live', 29), old('imported', 400)])
  assert.deepEqual([body.accepted, body.rejections.map(({ code }) => code)], [2, ['timestamp_too_old']])
  assert.equal((await record([old('imported', 500), old('imported', 1)])).body.accepted, 2)
  const before1970 = [-1, -1e15].map((timestamp) => event({ runId: `at ${timestamp}`, timestamp }))
  const refused = await record([...before1970, event({ runId: 'at 0', timestamp: 0 })])
  assert.deepEqual([refused.body.accepted, refused.body.rejectedEventIds.length], [1, 2])
  for (const { code, message } of refused.body.rejections) {
    assert.equal(code, 'timestamp_too_old')
    assert.match(message, /before 1970/)
  }
  const run = await service.api<RunDetail>('/runs/live')
  assert.ok(Date.parse(run.body.startedAt) > Date.now() - LIMITS.eventPastMs)
  for (const value of ['TRUE', '1', '', 'true, true']) {
    const other = await service.api<BatchResult>('/events/batch', {
      body: [old(`as ${value}`, 400)],
      headers: { [IMPORT_HEADER]: value },
    })
    assert.equal(other.body.accepted, 0, value)
  }
})

test('on a full disk valid events are retryable, and reads still work', async () => {
  const full = await startService({ minFreeDisk: '1TiB' })
  try {
    const { status, body } = await full.record([event({ eventId: 'keep' }), event({ eventId: 'bad', label: 1 })])
    assert.equal(status, 200)
    assert.deepEqual(
      [body.success, body.accepted, body.retryableEventIds, body.rejectedEventIds],
      [false, 0, ['keep'], ['bad']],
    )
    assert.equal((await full.api('/runs')).status, 200)
    assert.equal((await full.call('/readyz')).status, 503)
    assert.equal((await full.call('/healthz')).status, 200)
  } finally {
    await full.close()
  }
})
