/** Known bugs of other SDKs. Each test's name has the rule that prevents the bug, and the issue. */
import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import { test } from 'node:test'
import { Tacho, type Diagnostic, type TachoOptions } from '../src/index.ts'
import { assertBalanced } from './balance.ts'
import { acceptAll, judged, simulate, type Network, type SimulatedReply } from './simulation.ts'

const KEY = 'tacho_id_secret'

function client(network: Network, options: TachoOptions = {}) {
  const simulation = simulate(network)
  const diagnostics: Diagnostic[] = []
  const tacho = new Tacho(
    {
      apiKey: KEY,
      baseUrl: 'http://tacho.test',
      compression: 'never',
      onDiagnostic: (d) => diagnostics.push(d),
      ...options,
    },
    simulation.runtime,
  )
  const run = tacho.startRun({ agentName: 'a' })
  const record = (count: number) => Array.from({ length: count }, (_, n) => run.step(`step ${n}`))
  const sent = () => simulation.requests.flatMap(({ events }) => events.map(({ eventId }) => eventId))
  return { ...simulation, tacho, run, record, sent, diagnostics }
}

test('two flushes at once send each event once (opentelemetry-js#1665)', async () => {
  const { tacho, record, sent, pass } = client(acceptAll)
  const ids = record(150)
  const flushes = [tacho.flush(), tacho.flush()]
  await pass(100)
  assert.deepEqual(await Promise.all(flushes), [
    { sent: 150, rejected: 0, dropped: 0, left: 0 },
    { sent: 150, rejected: 0, dropped: 0, left: 0 },
  ])
  assert.deepEqual(sent(), ids)
  assertBalanced(tacho)
})

test('a full batch is sent at once, not at the next interval (opentelemetry-js#3772)', async () => {
  const { tacho, record, requests, pass } = client(acceptAll, { maxQueuedEvents: 250 })
  for (let burst = 0; burst < 10; burst++) {
    record(200)
    await pass(1)
  }
  assert.equal(tacho.counters().accepted, 2_000)
  assert.deepEqual(tacho.counters().dropped, {})
  assert.equal(requests.length, 20)
})

test('a request that times out loses nothing and is repeated with the same ids (opentelemetry-js#4520, #4406)', async () => {
  let calls = 0
  const silentOnce: Network = (request) =>
    calls++ === 0 ? new Promise<SimulatedReply>(() => undefined) : acceptAll(request)
  const { tacho, record, sent, pass } = client(silentOnce, { requestTimeoutMs: 2_000 })
  const ids = record(3)
  await pass(10_000)
  assert.deepEqual(sent(), [...ids, ...ids])
  const { accepted, retried, failedRequests } = tacho.counters()
  assert.deepEqual({ accepted, retried, failedRequests }, { accepted: 3, retried: 3, failedRequests: 1 })
  // The sender continues afterwards.
  record(1)
  await pass(2_000)
  assert.equal(tacho.counters().accepted, 4)
  assertBalanced(tacho)
})

test('requests never overlap, so bytes in flight are bounded (opentelemetry-js#6274)', async () => {
  let [open, most] = [0, 0]
  const { tacho, record, runtime, pass } = client(async (request) => {
    most = Math.max(most, ++open)
    await new Promise<void>((resolve) => runtime.timer(50, resolve))
    open--
    return acceptAll(request)
  })
  record(1_000)
  void tacho.flush()
  await pass(5_000)
  assert.equal(most, 1)
  assert.equal(tacho.counters().accepted, 1_000)
})

test('an event recorded during a request is sent without another record call (posthog-js#2144)', async () => {
  const { tacho, record, runtime, pass } = client(async (request) => {
    await new Promise<void>((resolve) => runtime.timer(500, resolve))
    return acceptAll(request)
  })
  record(1)
  await pass(1_200)
  record(1)
  await pass(5_000)
  assert.equal(tacho.counters().accepted, 2)
  assert.equal(tacho.counters().queued, 0)
})

test('every dropped event is counted by reason and reported to the host (langfuse#15374)', async () => {
  const { tacho, record, pass, diagnostics } = client(() => ({ status: 503 }), { maxQueuedEvents: 100 })
  record(500)
  await pass(60_000)
  assert.deepEqual(tacho.counters().dropped, { queue_full: 400 })
  assert.equal(tacho.counters().queued, 100)
  assert.ok(diagnostics.some(({ code }) => code === 'events_dropped'))
  assertBalanced(tacho)
})

test('Retry-After applies to the whole sender, including flush (posthog-js#4726)', async () => {
  let calls = 0
  const busyOnce: Network = (request) =>
    calls++ === 0 ? { status: 429, headers: { 'retry-after': '60' } } : acceptAll(request)
  const { tacho, record, requests, pass } = client(busyOnce)
  record(100)
  await pass(10)
  record(300)
  const flush = tacho.flush(5_000)
  await pass(5_000)
  assert.deepEqual(await flush, { sent: 0, rejected: 0, dropped: 0, left: 400 })
  await pass(54_900)
  assert.equal(requests.length, 1)
  await pass(2_000)
  assert.equal(tacho.counters().accepted, 400)
})

test('an oversize payload is measured before it is sent (posthog-js#4726)', async () => {
  const { run, requests, tacho, pass } = client(acceptAll)
  run.record({ type: 'NOTE', label: 'large', payload: { text: 'x'.repeat(3_000_000) } })
  await pass(2_000)
  assert.ok((requests[0]?.body.length ?? Infinity) < 270_000)
  assert.equal(tacho.counters().accepted, 1)
})

test('one circular value does not affect other events (langfuse-js#217)', async () => {
  const { run, requests, pass } = client(acceptAll)
  const circular: Record<string, unknown> = { name: 'loop' }
  circular['self'] = circular
  run.record({ type: 'NOTE', label: 'one', payload: circular })
  run.record({ type: 'NOTE', label: 'two', payload: { fine: true } })
  await pass(2_000)
  assert.deepEqual(
    requests[0]?.events.map(({ payload }) => payload),
    [{ name: 'loop', self: '[circular]' }, { fine: true }],
  )
})

test('each request keeps both limits of a batch (langfuse-js#417)', async () => {
  const { run, requests, tacho, pass } = client(acceptAll)
  for (let n = 0; n < 20; n++) run.record({ type: 'NOTE', label: 'large', payload: { text: 'ü'.repeat(100_000) } })
  for (let n = 0; n < 250; n++) run.step('small')
  void tacho.flush()
  await pass(2_000)
  assert.equal(tacho.counters().accepted, 270)
  for (const { body, events } of requests) {
    assert.ok(events.length <= 100)
    assert.ok(Buffer.byteLength(body) <= 1_048_576)
  }
  assert.ok(requests.some(({ events }) => events.length === 100))
})

test('flush ends after the answer, not before (langfuse#5843)', async () => {
  const { tacho, record, runtime, pass } = client(async (request) => {
    await new Promise<void>((resolve) => runtime.timer(700, resolve))
    return acceptAll(request)
  })
  record(1)
  let isOver = false
  void tacho.flush().then(() => (isOver = true))
  await pass(690)
  assert.equal(isOver, false)
  await pass(50)
  assert.equal(isOver, true)
})

test('flush of an empty queue ends at once and leaves no timer (sentry-javascript#18996)', async () => {
  const { tacho, record, pass, holds, timers } = client(acceptAll)
  assert.deepEqual(await tacho.flush(), { sent: 0, rejected: 0, dropped: 0, left: 0 })
  assert.equal(timers(), 0)
  record(1)
  const flush = tacho.flush()
  assert.equal(holds(), 1)
  await pass(5)
  await flush
  assert.equal(timers(), 0)
})

test('flush covers the events recorded before the call, not later ones', async () => {
  const { tacho, record, runtime, pass } = client(async (request) => {
    await new Promise<void>((resolve) => runtime.timer(100, resolve))
    return acceptAll(request)
  })
  record(100)
  const flush = tacho.flush()
  record(100)
  await pass(120)
  assert.equal((await flush).sent, 100)
  assert.equal(tacho.counters().queued, 100)
})

test('a huge Retry-After neither fires at once nor silences the client for a day', async () => {
  let calls = 0
  const network: Network = (request) =>
    calls++ === 0 ? { status: 503, headers: { 'retry-after': '99999999999' } } : acceptAll(request)
  const { tacho, record, requests, pass } = client(network)
  record(1)
  await pass(299_000)
  assert.equal(requests.length, 1)
  await pass(5_000)
  assert.equal(tacho.counters().accepted, 1)
})

test('one answer can reject, retry and accept different events', async () => {
  let calls = 0
  const { tacho, record, requests, pass, diagnostics } = client((request) => {
    if (calls++ > 0) return acceptAll(request)
    const [first, second] = request.events.map(({ eventId }) => eventId)
    const rejections = [{ index: 1, eventId: second, code: 'too_long', message: 'label is too long' }]
    return judged({ success: false, accepted: 1, retryableEventIds: [first], rejectedEventIds: [second], rejections })
  })
  const ids = record(3)
  await pass(10_000)
  assert.deepEqual(
    requests.map(({ events }) => events.map(({ eventId }) => eventId)),
    [ids, [ids[0]]],
  )
  const { accepted, rejected, retried } = tacho.counters()
  assert.deepEqual({ accepted, rejected, retried }, { accepted: 2, rejected: 1, retried: 1 })
  assert.match(diagnostics.find(({ code }) => code === 'event_rejected')?.message ?? '', /too_long/)
  assertBalanced(tacho)
})

test('an id in no list is sent again if the count is too low, and is delivered otherwise', async () => {
  let calls = 0
  const { tacho, record, requests, pass } = client((request) =>
    calls++ === 0 ? judged({ accepted: 1 }) : acceptAll(request),
  )
  record(2)
  await pass(10_000)
  assert.equal(requests.length, 2)
  assert.equal(requests[1]?.events.length, 2)
  assert.equal(tacho.counters().accepted, 2)
})

/** An error as Tacho sends it. */
const problem = (status: number) => ({
  status,
  headers: { 'content-type': 'application/problem+json; charset=utf-8' },
  body: { type: 'urn:tacho:error:unauthorized', status },
})

test("after Tacho's 401 or 403, events wait, no flush does, and the client tries again after five minutes", async () => {
  for (const [status, code] of [
    [401, 'unauthorized'],
    [403, 'forbidden'],
  ] as const) {
    let refused = true
    const { tacho, record, requests, pass, diagnostics } = client(() =>
      refused ? problem(status) : judged({ accepted: 100 }),
    )
    record(150)
    await pass(5_000)
    record(10)
    await pass(60_000)
    assert.equal(requests.length, 1)
    assert.equal((await tacho.flush(5_000)).left, 160)
    assert.equal(diagnostics.filter((diagnostic) => diagnostic.code === code).length, 1)
    await pass(300_000)
    assert.equal(requests.length, 2)
    refused = false
    await pass(400_000)
    assert.equal(tacho.counters().accepted, 160)
    refused = true
    record(3)
    await pass(5_000)
    await tacho.shutdown()
    assert.deepEqual(tacho.counters().dropped, { [code]: 3 })
    assertBalanced(tacho)
  }
})

test('a 401 or 403 page of a proxy is retried like any other failure', async () => {
  const own = { type: 'urn:tacho:error:unauthorized' }
  for (const status of [401, 403])
    for (const reply of [
      { status, headers: { 'content-type': 'text/html' }, body: '<html>Sign in</html>' },
      { status, headers: { 'content-type': 'application/json' }, body: own },
      { status, headers: { 'content-type': 'application/problem+json' }, body: { type: 'about:blank' } },
    ]) {
      let calls = 0
      const { tacho, record, pass } = client((request) => (calls++ === 0 ? reply : acceptAll(request)))
      record(150)
      await pass(60_000)
      assert.equal(tacho.counters().accepted, 150)
      assert.deepEqual(tacho.counters().dropped, {})
    }
})

test('diagnostics, inspection, JSON and errors never contain the key', async () => {
  const failing: Network = ({ headers }) => {
    throw new Error(`refused ${JSON.stringify(headers)}`)
  }
  const { tacho, run, record, pass, diagnostics } = client(failing)
  record(1)
  await pass(30_000)
  const everything = [tacho, run, diagnostics].map(
    (value) => inspect(value, { depth: 20, showHidden: true }) + JSON.stringify(value),
  )
  assert.ok(diagnostics.length > 0)
  assert.doesNotMatch(everything.join(), /tacho_id_secret/)
})
