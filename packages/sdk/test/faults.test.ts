/** Faults of the service, the network and the host. The counters balance in each test. */
import assert from 'node:assert/strict'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { test, type TestContext } from 'node:test'
import fc from 'fast-check'
import { Tacho, type TachoOptions } from '../src/index.ts'
import { hostRuntime, type Runtime } from '../src/delivery/runtime.ts'
import { eventually } from '../../server/test/setup/eventually.ts'
import { assertBalanced } from './balance.ts'
import { accept, judge, startScriptedServer, status, type Answer } from './scripted-server.ts'
import { acceptAll, judged, simulate, type Network } from './simulation.ts'

const silent = { apiKey: 'key', onDiagnostic: () => undefined }

function simulated(network: Network, options: TachoOptions = {}, random?: () => number) {
  const simulation = simulate(network, random)
  // No compression, because it takes real time, which the simulated clock does not have.
  const defaults = { ...silent, baseUrl: 'http://tacho.test', compression: 'never' } as const
  const tacho = new Tacho({ ...defaults, ...options }, simulation.runtime)
  return { ...simulation, tacho, run: tacho.startRun({ agentName: 'a' }) }
}

/** A client without backoffs, on a real socket. */
async function connected(t: TestContext, options: TachoOptions, ...answers: Answer[]) {
  const server = await startScriptedServer(...answers)
  t.after(server.close)
  const tacho = new Tacho({ ...silent, baseUrl: server.url, ...options }, { ...hostRuntime, random: () => 0 })
  t.after(() => tacho.shutdown(0))
  return { server, tacho, run: tacho.startRun({ agentName: 'a' }) }
}

test('if the service is down for ten minutes, every event that fits into the queue is delivered later', async () => {
  let isDown = true
  const { tacho, run, requests, pass } = simulated((request) => {
    if (!isDown) return acceptAll(request)
    throw new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } })
  })
  for (let second = 0; second < 600; second++) {
    for (let n = 0; n < 20; n++) run.step(`step ${second}`)
    await pass(1_000)
    assertBalanced(tacho)
  }
  assert.equal(tacho.counters().queued, 12_000)
  // Backoff with full jitter up to 30 s. The simulated random number makes it always half.
  assert.ok(requests.length > 30 && requests.length < 60, `${requests.length} requests`)
  isDown = false
  await pass(120_000)
  const { accepted, queued, dropped } = tacho.counters()
  assert.deepEqual({ accepted, queued, dropped }, { accepted: 12_000, queued: 0, dropped: {} })
})

test('a full queue drops the oldest events first, outcomes and decisions last; memory stays bounded', async () => {
  let isDown = true
  const maxQueuedBytes = 1_048_576
  const { tacho, requests, pass } = simulated((request) => (isDown ? { status: 503 } : acceptAll(request)), {
    maxQueuedEvents: 1_000,
    maxQueuedBytes,
  })
  for (let n = 0; n < 500; n++) {
    const run = tacho.startRun({ runId: `run ${n}` })
    for (let step = 0; step < 10; step++) run.step(`step ${n}`, { text: 'x'.repeat(500) })
    run.end()
    if (n % 10 === 0) await pass(1_000)
    const { queued, queuedBytes } = tacho.counters()
    assert.ok(queued <= 1_000 && queuedBytes <= maxQueuedBytes)
  }
  const { recorded, queued, dropped } = tacho.counters()
  assert.deepEqual(dropped, { queue_full: recorded - queued })
  assertBalanced(tacho)
  isDown = false
  const before = requests.length
  await pass(120_000)
  const delivered = requests.slice(before).flatMap(({ events }) => events)
  const outcomes = delivered.filter(({ eventType }) => eventType === 'SESSION_OUTCOME')
  assert.equal(outcomes.length, 500)
  const steps = delivered.filter(({ eventType }) => eventType === 'AGENT_STEP').map(({ label }) => label)
  assert.equal(steps.at(-1), 'step 499')
  assert.ok(steps.length > 300)
})

const away =
  (code: number): Network =>
  () => ({ status: code })
const FAULTS: Record<string, Network> = {
  'status 500': away(500),
  'status 502 with a page': () => ({ status: 502, body: '<html>' }),
  'status 503': away(503),
  'status 429': () => ({ status: 429, headers: { 'retry-after': '3' } }),
  'status 408': away(408),
  'status 404, a wrong address': away(404),
  'a redirect': () => ({ status: 302, headers: { location: 'http://elsewhere.test' } }),
  'a page instead of JSON': () => ({ body: '<html>welcome</html>' }),
  'JSON that is no answer': () => ({ body: { success: true } }),
  'an answer of wrong types': () => ({
    body: { success: true, accepted: '1', retryableEventIds: [], rejectedEventIds: [] },
  }),
  'an empty answer': () => ({ body: '' }),
  'an answer without end': () => ({ body: 'x'.repeat(2_000_000) }),
  'a connection that breaks': () => {
    throw new Error('socket hang up')
  },
  'half of each batch to be retried': ({ events }) => {
    const ids = events.map(({ eventId }) => eventId)
    const retryableEventIds = ids.slice(0, Math.ceil(ids.length / 2))
    return judged({ success: false, accepted: ids.length - retryableEventIds.length, retryableEventIds })
  },
}

for (const [name, network] of Object.entries(FAULTS)) {
  test(`${name} loses nothing`, async () => {
    let isFaulty = true
    const { tacho, run, pass } = simulated((request) => (isFaulty ? network(request) : acceptAll(request)))
    for (let n = 0; n < 250; n++) run.step('step')
    for (let minute = 0; minute < 3; minute++) {
      await pass(60_000)
      assertBalanced(tacho)
    }
    isFaulty = false
    await pass(60_000)
    const { accepted, dropped, rejected } = tacho.counters()
    assert.deepEqual({ accepted, dropped, rejected }, { accepted: 250, dropped: {}, rejected: 0 })
  })
}

for (const code of [400, 413]) {
  test(`one event that the service answers with ${code} is found and dropped alone`, async () => {
    const { tacho, run, pass } = simulated((request) =>
      request.events.some(({ label }) => label === 'bad') ? { status: code } : acceptAll(request),
    )
    for (let n = 0; n < 120; n++) run.step(n === 42 ? 'bad' : 'fine')
    await pass(60_000)
    const { accepted, dropped } = tacho.counters()
    assert.deepEqual({ accepted, dropped }, { accepted: 119, dropped: { refused: 1 } })
    assertBalanced(tacho)
  })
}

test('every event is accounted for after any sequence of answers', async () => {
  const kinds = [...Object.values(FAULTS), away(400), away(413), acceptAll, acceptAll]
  const rejecting: Network = ({ events }) =>
    judged({ success: false, accepted: events.length - 1, rejectedEventIds: [events[0]?.eventId] })
  const garbage: Network = ({ events }) => judged({ accepted: -1, retryableEventIds: ['unknown', events[0]?.eventId] })
  const script = fc.array(fc.constantFrom(...kinds, rejecting, garbage), { minLength: 1, maxLength: 12 })
  const recorded = fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(script, recorded, fc.integer({ min: 1, max: 400 }), async (answers, amounts, maxQueuedEvents) => {
      let turn = 0
      let isSilent = false
      const play: Network = (request) =>
        isSilent ? new Promise<never>(() => undefined) : (answers[turn++] ?? acceptAll)(request)
      const { tacho, run, pass } = simulated(play, { maxQueuedEvents }, Math.random)
      for (const amount of amounts) {
        for (let n = 0; n < amount; n++) run.step('step')
        assertBalanced(tacho)
        await pass(2_000)
        assertBalanced(tacho)
      }
      await pass(3_600_000)
      assertBalanced(tacho)
      assert.equal(tacho.counters().queued, 0)
      isSilent = true
      const before = tacho.counters().recorded
      // The first event of a run also records the start of the run.
      run.step('last')
      const ended = tacho.shutdown(0)
      await pass(0)
      await ended
      assertBalanced(tacho)
      assert.deepEqual(tacho.counters().dropped['closed'], tacho.counters().recorded - before)
    }),
    { numRuns: 25 },
  )
})

test('an event recorded during a request is sent exactly once', async () => {
  const { tacho, run, requests, runtime, pass } = simulated(async (request) => {
    await new Promise<void>((resolve) => runtime.timer(30, resolve))
    return acceptAll(request)
  })
  for (let n = 0; n < 200; n++) {
    run.step(`step ${n}`)
    await pass(10)
  }
  await pass(5_000)
  const labels = requests.flatMap(({ events }) => events.map(({ label }) => label))
  assert.deepEqual(
    labels,
    Array.from({ length: 200 }, (_, n) => `step ${n}`),
  )
  assertBalanced(tacho)
})

test('after a freeze, the client abandons a request that never ends', async () => {
  let calls = 0
  const { tacho, run, runtime, pass, now } = simulated((request) =>
    calls++ === 0 ? new Promise<never>(() => undefined) : acceptAll(request),
  )
  // The freeze stops the timers of the first request.
  let shift = 0
  const real = runtime.now
  runtime.now = () => real() + shift
  const timer = runtime.timer
  runtime.timer = (ms, act, hold) => (ms === 10_000 ? { cancel: () => undefined } : timer(ms, act, hold))
  run.step('one')
  await pass(1_100)
  assert.equal(calls, 1)
  shift = 60_000
  run.step('two')
  await pass(10_000)
  assert.ok(now() > 0)
  assert.equal(tacho.counters().accepted, 2)
  assertBalanced(tacho)
})

test('timers that fire early do not end delivery', async () => {
  let calls = 0
  const { tacho, run, runtime, pass } = simulated((request) => (calls++ < 5 ? { status: 503 } : acceptAll(request)))
  const timer = runtime.timer
  runtime.timer = (ms, act, hold) => timer(ms > 1 ? ms - 1 : ms, act, hold)
  run.step('step')
  await pass(120_000)
  assert.equal(tacho.counters().accepted, 1)
})

test('a broken socket, garbage and silence on a real connection lose nothing', async (t) => {
  // Long enough for slow machines: a request must time out only because the service does not answer.
  const requestTimeoutMs = 600_000
  const timeouts = new Set<() => void>()
  const timeOut = () => timeouts.forEach((act) => act())
  const timer: Runtime['timer'] = (ms, act, hold) => {
    if (ms !== requestTimeoutMs) return hostRuntime.timer(ms, act, hold)
    timeouts.add(act)
    return { cancel: () => void timeouts.delete(act) }
  }
  const server = await startScriptedServer(
    (response) => void response.destroy(),
    (response) => void response.end('<html>'),
    timeOut,
    (response) => void response.writeHead(200, { 'content-length': 5_000 }).write('{"success"', timeOut),
    status(429, { 'retry-after': '0' }),
    (response, { events }) =>
      judge(response, { success: false, retryableEventIds: events.map(({ eventId }) => eventId) }),
    accept,
  )
  t.after(server.close)
  const options = { ...silent, baseUrl: server.url, flushIntervalMs: 1, requestTimeoutMs }
  const tacho = new Tacho(options, { ...hostRuntime, random: () => 0, timer })
  t.after(() => tacho.shutdown(0))
  const run = tacho.startRun({ agentName: 'a' })
  for (let n = 0; n < 10; n++) run.step(`step ${n}`)
  assert.deepEqual(await tacho.flush(60_000), { sent: 10, rejected: 0, dropped: 0, left: 0 })
  const ids = server.batches.map(({ events }) => events.map(({ eventId }) => eventId).join())
  assert.equal(ids.length, 7)
  assert.equal(new Set(ids).size, 1)
  assertBalanced(tacho)
})

test('large batches are compressed, unless the service is on this machine', async (t) => {
  const server = await startScriptedServer()
  t.after(server.close)
  const { port } = new URL(server.url)
  const wire = async (baseUrl: string, options: TachoOptions = {}) => {
    // The name is not a loopback address, so the client compresses.
    const fetch: TachoOptions['fetch'] = (url, init) =>
      globalThis.fetch(url.replace('tacho.test', `127.0.0.1:${port}`), init as RequestInit)
    const tacho = new Tacho({ ...silent, baseUrl, fetch, ...options })
    const run = tacho.startRun()
    for (let n = 0; n < 50; n++) run.step('step', { text: 'the same text again '.repeat(20) })
    await tacho.shutdown(30_000)
    assert.equal(tacho.counters().accepted, 50)
    const { wireBytes, bytes, headers } = server.batches.at(-1) ?? assert.fail()
    return { isSmaller: wireBytes < bytes / 3, encoding: headers['content-encoding'] }
  }
  assert.deepEqual(await wire('http://tacho.test'), { isSmaller: true, encoding: 'gzip' })
  assert.deepEqual(await wire('http://tacho.test', { compression: 'never' }), { isSmaller: false, encoding: undefined })
  assert.deepEqual(await wire(server.url), { isSmaller: false, encoding: undefined })
})

test('a slow or broken service does not block the event loop of the host', async (t) => {
  // Compare with the delay of a host without a client, because the machine may be busy.
  const delayOf = async (work: () => void): Promise<number> => {
    const delay = monitorEventLoopDelay({ resolution: 1 })
    delay.enable()
    for (let turn = 0; turn < 60; turn++) {
      work()
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    delay.disable()
    return delay.percentile(50) / 1e6
  }
  const slow = await connected(t, { requestTimeoutMs: 50 }, () => undefined)
  const refused = await connected(t, {}, (response) => void response.destroy())
  for (const { run, tacho } of [slow, refused]) {
    // Repeat, because the machine may become busy between the two measurements. A client that blocks fails every time.
    await eventually(async () => {
      const idle = await delayOf(() => undefined)
      const busy = await delayOf(() => {
        for (let n = 0; n < 20; n++) run.step('step', { text: 'x'.repeat(500) })
      })
      assert.ok(busy < idle + 20, `${busy} ms, ${idle} ms without a client`)
      return true
    }, 'an event loop that is not blocked')
    assertBalanced(tacho)
  }
})

test('errors in callbacks of the host affect neither the host nor the client', async () => {
  const throwing = () => {
    throw new Error('host')
  }
  const simulation = simulate(acceptAll)
  const options = { apiKey: 'key', onDiagnostic: throwing, waitUntil: throwing, compression: 'never' }
  const tacho = new Tacho({ ...options, baseUrl: 'http://tacho.test', unknown: 1 } as TachoOptions, simulation.runtime)
  const result = await tacho.run({ agentName: 'a' }, () => 'kept')
  tacho.record({ type: 'NOTE', label: 'outside of a run' })
  await simulation.pass(2_000)
  assert.equal(result, 'kept')
  await assert.rejects(
    tacho.run(() => {
      throw new RangeError('own')
    }),
    RangeError,
  )
  await simulation.pass(2_000)
  assert.equal(tacho.counters().accepted, 2)
  assert.deepEqual(tacho.counters().dropped, { no_run: 1 })
  assertBalanced(tacho)
})

test('the first event and the first one after a pause are sent at once; others wait for each other', async () => {
  const { tacho, run, requests, pass } = simulated(acceptAll)
  const sizes = () => requests.map(({ at, events }) => [at, events.length])
  run.step('first')
  run.step('of the same turn')
  await pass(0)
  await pass(10)
  run.step('later')
  run.step('later')
  await pass(2_000)
  run.step('after a pause')
  await pass(0)
  assert.deepEqual(sizes(), [
    [0, 2],
    [1_000, 2],
    [2_010, 1],
  ])
  assertBalanced(tacho)
})
