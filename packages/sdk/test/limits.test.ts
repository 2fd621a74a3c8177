/** Limits of texts, options, waits, ids and samples. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { NewEvent } from '../src/recording/event.ts'
import { Tacho, type TachoOptions } from '../src/index.ts'
import { resolveOptions } from '../src/options.ts'
import { backoffMs, retryAfterMs, waitMs } from '../src/delivery/retry.ts'
import { isSampled } from '../src/recording/sampling.ts'
import { FakeService } from '../src/testing/fake-service.ts'
import { fakeTacho } from '../src/testing/fake-tacho.ts'
import { createIds } from '../src/recording/uuid.ts'
import { assertBalanced } from './balance.ts'
import { acceptAll, simulate } from './simulation.ts'

function client(options: TachoOptions = {}) {
  const simulation = simulate(acceptAll)
  const codes: string[] = []
  const defaults = { apiKey: 'key', baseUrl: 'http://tacho.test', compression: 'never' } as const
  const tacho = new Tacho({ ...defaults, onDiagnostic: ({ code }) => codes.push(code), ...options }, simulation.runtime)
  const events = async () => {
    await simulation.pass(2_000)
    return simulation.requests.flatMap((request) => request.events)
  }
  return { ...simulation, tacho, codes, events }
}

/** Each character has two code units, because limits count code points. */
const chars = (count: number): string => '😀'.repeat(count)

test('each payload names the release of the agent, in the shortest form of capture too', async () => {
  const { tacho, events, codes } = client({ release: chars(100), capture: 'metadata-only' })
  const run = tacho.startRun()
  run.step('step')
  run.step('step', { release: 'own' })
  assert.deepEqual(
    (await events()).map(({ payload }) => payload),
    [{ release: chars(100) }, { release: 'own' }],
  )
  assert.deepEqual(codes, [])
  const released = (release: unknown, TACHO_RELEASE?: string) =>
    resolveOptions({ apiKey: 'key', release } as TachoOptions, { TACHO_RELEASE }, () => 'id').settings.released
  assert.deepEqual(released('1.4.0', '1.3.0'), { release: '1.4.0' })
  assert.deepEqual(released(undefined, '1.3.0'), { release: '1.3.0' })
  assert.deepEqual([released(undefined), released(undefined, ''), released(chars(101))], [{}, {}, {}])
})

test('recorders use all digits and letters of their five characters', async () => {
  const { tacho, events } = client()
  for (let run = 0; run < 200; run++) tacho.startRun().step('step')
  const recorders = (await events()).map(({ n }) => String(n).slice(0, 5))
  assert.ok(recorders.every((recorder) => /^[0-9a-z]{5}$/.test(recorder)))
  assert.equal(new Set(recorders.join('')).size, 36)
})

test('a text at its limit is kept; with one more character it is cut and ends with an ellipsis', async () => {
  const { tacho, events, codes } = client()
  const run = tacho.startRun({ agentName: chars(1_024), agentId: chars(1_024), sessionId: chars(1_024) })
  run.record({ type: chars(50), label: chars(255) })
  run.record({ type: chars(51), label: chars(256) })
  const over = tacho.startRun({ agentName: chars(1_025), sessionId: chars(1_025) })
  over.step('step')
  const [exact, cut, cutRun] = await events()
  assert.deepEqual([exact?.eventType, exact?.label], [chars(50), chars(255)])
  assert.deepEqual([exact?.['agentName'], exact?.['agentId'], exact?.['sessionId']], Array(3).fill(chars(1_024)))
  assert.deepEqual([cut?.eventType, cut?.label], [`${chars(49)}…`, `${chars(254)}…`])
  assert.deepEqual([cutRun?.['agentName'], cutRun?.['sessionId']], Array(2).fill(`${chars(1_023)}…`))
  assert.deepEqual(codes, ['text_cut'])
})

test('a run id of 255 characters is kept; a longer or empty one is replaced, never cut', async () => {
  const { tacho, events, codes } = client()
  for (const runId of [chars(255), chars(256), '']) tacho.startRun({ runId }).step('step')
  const [exact, long, empty] = (await events()).map(({ runId }) => runId)
  assert.equal(exact, chars(255))
  for (const replaced of [long, empty]) assert.match(replaced ?? '', /^[0-9a-f-]{36}$/)
  assert.notEqual(long, empty)
  assert.ok(codes.includes('invalid_run_id'))
})

test('texts of events are well-formed and without NUL', async () => {
  const { tacho, events } = client()
  tacho.startRun({ agentName: 'a\0b' }).record({ type: 'T\ud800', label: 'l\0' })
  const [event] = await events()
  assert.deepEqual([event?.['agentName'], event?.eventType, event?.label], ['a\ufffdb', 'T\ufffd', 'l\ufffd'])
})

test('policies judge a run by the ids that its events have', async () => {
  const service = new FakeService('approve')
  const names = { agentId: 'a\0', sessionId: 's\ud800', runId: 'r\udfff' }
  const conditions = [
    'agent.id == "a\ufffd"',
    'session.id == "s\ufffd"',
    'run.id == "r\ufffd"',
    'agent.name == "n\ufffd"',
  ]
  for (const condition of conditions) {
    service.setPolicies([
      { policyId: 'stop', name: 'Stop', version: '1', condition, severity: 'CRITICAL', action: 'BLOCK' },
    ])
    const tacho = new Tacho({ apiKey: 'key', baseUrl: 'http://service', fetch: service.fetch, agentName: 'n\0' })
    const tool = tacho.guard((_input: object) => 'ran', { name: 'tool' })
    await assert.rejects(
      tacho.run(names, () => tool({})),
      { code: 'policy' },
      condition,
    )
    await tacho.shutdown()
  }
})

test('values that throw when read never throw into the host, and every event is counted', async () => {
  const { tacho, events } = client()
  const hostile = Object.defineProperty({}, 'text', {
    enumerable: true,
    get: () => {
      throw new Error('on purpose')
    },
  })
  const { proxy: revoked, revoke } = Proxy.revocable({}, {})
  revoke()
  for (const value of [hostile, revoked, null, undefined, 5] as never[]) {
    const run = tacho.startRun(value)
    run.userInput('x', value)
    run.llmCall(value)
    run.toolCall(value)
    run.error(value, value)
    run.annotate(value)
    assert.equal(
      run.span('s', (span) => (span.set(value), 'result')),
      'result',
    )
    run.end(value, value)
    tacho.resume(value)
    new Tacho(value)
    new Tacho({ masking: value, metadataKeys: value })
  }
  const failed = tacho.run(() => {
    throw revoked
  })
  assert.ok(await failed.catch((thrown: unknown) => thrown === revoked))
  await events()
  await tacho.flush(Symbol('time') as never)
  assertBalanced(tacho)
})

test('values of wrong types never throw and never lose the event', async () => {
  const { tacho, events } = client()
  const odd = { agentName: 7, sessionId: {}, agentId: null, runId: 12 } as unknown as { runId: string }
  const run = tacho.startRun(odd)
  run.record({
    type: undefined as unknown as string,
    label: null as unknown as string,
    payload: 'text' as unknown as Record<string, unknown>,
  })
  run.record({ type: 'T', label: 'invalid time', at: new Date(Number.NaN) })
  run.error(null)
  run.error(Object.create(null))
  run.llmCall({})
  assert.equal((await events()).length, 5)
  assertBalanced(tacho)
})

test('invalid options never throw: they are reported and replaced, privacy options by the strictest choice', () => {
  const resolve = (options: unknown) => resolveOptions(options as TachoOptions, {}, () => 'id')
  fc.assert(
    fc.property(
      fc.record(
        Object.fromEntries(
          [
            'apiKey',
            'baseUrl',
            'clientId',
            'capture',
            'masking',
            'sampleRate',
            'maxQueuedEvents',
            'spool',
            'waitUntil',
            'x',
          ].map((name) => [name, fc.anything()]),
        ),
        { requiredKeys: [] },
      ),
      (options) => {
        const { settings } = resolve(options)
        assert.ok(settings.maxQueuedEvents >= 1 && settings.sampleRate >= 0 && settings.sampleRate <= 1)
        assert.ok(['full', 'metadata-only'].includes(settings.capture))
        assert.ok(settings.clientId.length > 0)
      },
    ),
  )
  const good = { apiKey: 'key' }
  assert.equal(resolve({ ...good, masking: { emial: true } }).settings.capture, 'metadata-only')
  assert.equal(resolve({ ...good, capture: 'none' }).settings.capture, 'metadata-only')
  assert.equal(resolve({ ...good, maxQueuedEvents: 0 }).settings.maxQueuedEvents, 20_000)
  assert.deepEqual(resolve({ ...good, maxQueuedEvents: 1, sampleRate: 0 }).problems, [])
  assert.deepEqual(resolve({ ...good, maxQeuedEvents: 1 }).problems, ['Unknown option maxQeuedEvents.'])
  assert.equal(resolve({}).settings.enabled, false)
  assert.equal(resolve({ apiKey: 'two\nlines' }).settings.enabled, false)
  assert.equal(resolve({ ...good, baseUrl: 'ftp://x' }).settings.enabled, false)
  assert.equal(resolve({ ...good, baseUrl: 'https://x.test/tacho/' }).settings.baseUrl, 'https://x.test/tacho')
  const environment = { TACHO_API_KEY: 'k', TACHO_URL: 'https://y.test', TACHO_CLIENT_ID: 'c' }
  const { settings, apiKey } = resolveOptions({}, environment, () => 'id')
  assert.deepEqual([settings.enabled, settings.baseUrl, settings.clientId, apiKey], [true, 'https://y.test', 'c', 'k'])
})

test('one message lists all invalid options, and begins with the reason why nothing is recorded', () => {
  const messages: string[] = []
  const options = { apikey: 'x', apiKey: 'key', baseUrl: 'localhost:4791', flushIntervalMs: 'abc' }
  const onDiagnostic = ({ message }: { message: string }) => messages.push(message)
  new Tacho({ ...options, onDiagnostic } as unknown as TachoOptions)
  assert.deepEqual(messages, [
    'Nothing is recorded: baseUrl (or TACHO_URL) must be an http or https address. ' +
      'flushIntervalMs must be a number from 0 to 3600000. Unknown option apikey.',
  ])
})

test('a disabled client counts what it drops and sends nothing', async () => {
  const { tacho, requests, pass } = client({ enabled: false })
  await tacho.run((run) => run.step('step'))
  await pass(5_000)
  assert.equal(requests.length, 0)
  assert.deepEqual(tacho.counters().dropped, { disabled: 2 })
  assertBalanced(tacho)
})

test('the backoff is full jitter up to 30 seconds, and at least Retry-After, which counts up to 5 minutes', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10_000 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (failures, random) => {
        const wait = backoffMs(failures, random)
        assert.ok(wait >= 0 && wait <= Math.min(30_000, 1_000 * 2 ** (failures - 1)))
      },
    ),
  )
  const now = Date.UTC(2026, 0, 1)
  assert.equal(retryAfterMs('7', now), 7_000)
  assert.equal(retryAfterMs('Thu, 01 Jan 2026 00:00:30 GMT', now), 30_000)
  assert.equal(retryAfterMs('Wed, 31 Dec 2025 00:00:00 GMT', now), 0)
  assert.equal(retryAfterMs('300', now), 300_000)
  assert.equal(retryAfterMs('301', now), 300_000)
  for (const header of [null, '', 'soon', '-1x']) assert.equal(retryAfterMs(header, now), undefined, String(header))
  assert.ok(waitMs(1, '20', now, 0.9) >= 20_000)
  assert.equal(waitMs(20, '1', now, 0.9), 27_000)
})

test('ids are UUIDv7, increase within one client, and follow the clock', () => {
  let time = Date.UTC(2026, 0, 1)
  const ids = createIds({ now: () => time, fillRandom: (bytes) => void crypto.getRandomValues(bytes) })
  const made = Array.from({ length: 20_000 }, (_, n) => {
    if (n % 9_000 === 0) time += 1
    // The clock goes back a little. Ids keep their time until the clock has caught up.
    if (n === 15_000) time -= 5_000
    return ids.uuid()
  })
  for (const id of made.slice(0, 100))
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.deepEqual(made, made.toSorted())
  assert.equal(new Set(made).size, made.length)
  assert.match(ids.span(), /^[0-9a-f]{16}$/)
})

test('a sample has the configured share of runs, is the same in every process, and keeps outcomes and decisions', async () => {
  const runs = Array.from({ length: 10_000 }, (_, n) => `run-${n}`)
  const share = runs.filter((runId) => isSampled(runId, 0.2)).length / runs.length
  assert.ok(share > 0.18 && share < 0.22, String(share))
  assert.ok(runs.every((runId) => isSampled(runId, 1) && !isSampled(runId, 0)))
  // A larger sample contains the smaller one.
  assert.ok(runs.every((runId) => !isSampled(runId, 0.2) || isSampled(runId, 0.5)))

  const { tacho, events } = client({ sampleRate: 0 })
  await tacho.run((run) => {
    run.step('left out')
    run.record({ type: 'POLICY_DECISION', label: 'kept' })
  })
  const kept = await events()
  assert.deepEqual(
    kept.map(({ label }) => label),
    ['kept', 'completed'],
  )
  assert.deepEqual(kept[1]?.payload, { sampleRate: 0, status: 'COMPLETED' })
  assert.deepEqual(tacho.counters().dropped, { sampled: 1 })
  assertBalanced(tacho)
})

test('each run records one outcome, which says how it ended', async () => {
  const { tacho, events } = client()
  const abort = Object.assign(new Error('stop'), { name: 'AbortError' })
  await tacho.run(() => undefined)
  await assert.rejects(
    tacho.run(() => Promise.reject(new RangeError('own'))),
    RangeError,
  )
  await assert.rejects(
    tacho.run(() => Promise.reject(abort)),
    { name: 'AbortError' },
  )
  await tacho.run((run) => void run.end('CANCELLED'))
  class APIUserAbortError extends Error {}
  await assert.rejects(
    tacho.run(() => Promise.reject(new APIUserAbortError('aborted'))),
    APIUserAbortError,
  )
  const payloads = (await events()).map(({ payload }) => payload as { exception?: { type: string } })
  assert.deepEqual(
    payloads.map(({ exception }) => exception?.type),
    [undefined, 'RangeError', 'AbortError', undefined, 'APIUserAbortError'],
  )
  const outcomes = payloads.map(({ exception: _, ...outcome }) => outcome)
  assert.deepEqual(outcomes, [
    { status: 'COMPLETED' },
    { error: 'RangeError: own', status: 'FAILED' },
    { error: 'AbortError: stop', status: 'CANCELLED' },
    { status: 'CANCELLED' },
    { error: 'APIUserAbortError: aborted', status: 'CANCELLED' },
  ])
})

test('concurrent runs keep separate contexts, across awaits and clients', async () => {
  const { tacho, events } = client()
  const other = client()
  await Promise.all(
    ['a', 'b'].map((runId) =>
      tacho.run({ runId }, async (run) => {
        await new Promise((resolve) => setTimeout(resolve, 1))
        await run.span('outer', () =>
          run.span('inner', async () => tacho.record({ type: 'NOTE', label: `of ${runId}` })),
        )
        assert.equal(other.tacho.record({ type: 'NOTE', label: 'no run of this client' }), undefined)
      }),
    ),
  )
  const all = await events()
  for (const runId of ['a', 'b']) {
    const [note, inner, outer] = all.filter((event) => event.runId === runId)
    assert.deepEqual([note?.label, inner?.label, outer?.label], [`of ${runId}`, 'inner', 'outer'])
    assert.deepEqual([note?.spanId, inner?.parentSpanId], [inner?.spanId, outer?.spanId])
  }
  assert.deepEqual(other.tacho.counters().dropped, { no_run: 2 })
})

test('a handle continues a run in another process, under the span in which it was made', async () => {
  const first = client()
  const handle = await first.tacho.run({ sessionId: 's', agentName: 'planner' }, (run) =>
    run.span('hand over', () => JSON.parse(JSON.stringify(run.toHandle())) as ReturnType<typeof run.toHandle>),
  )
  const second = client()
  second.tacho.resume(handle).within(() => second.tacho.record({ type: 'NOTE', label: 'elsewhere' }))
  const [span] = await first.events()
  const [note] = await second.events()
  assert.deepEqual(
    [note?.runId, note?.['sessionId'], note?.['agentName'], note?.parentSpanId],
    [span?.runId, 's', 'planner', span?.spanId],
  )
})

test('waitUntil receives a promise that resolves after delivery; withRun without it waits for delivery', async () => {
  const handed: Promise<unknown>[] = []
  const { tacho, pass } = client({ waitUntil: (promise) => handed.push(promise) })
  tacho.startRun().step('one')
  tacho.startRun().step('two')
  assert.equal(handed.length, 1)
  await pass(10)
  assert.equal(((await handed[0]) as { left: number }).left, 0)
  assert.equal(tacho.counters().accepted, 2)

  const plain = client()
  const over = plain.tacho.withRun(() => 'result')
  await plain.pass(10)
  assert.equal(await over, 'result')
  assert.equal(plain.tacho.counters().accepted, 1)
})

test('an event with unknown or missing members, and a run with an unknown option, are said', async () => {
  const said: string[] = []
  const fake = fakeTacho({ onDiagnostic: ({ code, message }) => void said.push(`${code}: ${message}`) })
  const run = fake.tacho.startRun({ session: 'x' } as object)
  run.record({ eventType: 'LLM_CALL', payload: {} } as unknown as NewEvent)
  await fake.tacho.shutdown()
  assert.deepEqual(said, [
    'invalid_option: A run has no option session.',
    'invalid_event: An event has an unknown member eventType, no type, no label.',
  ])
})

test('an unknown or missing member of any other public call is said, and the call is carried out', async () => {
  const run = (value: unknown) => value
  const misspelt = { approvalTimeout: 5 } as object
  type Act = (tacho: Tacho) => unknown
  const cases: [act: Act, message: string, options?: object][] = [
    [(tacho) => tacho.guard(run, { name: 'a', ...misspelt })(1), 'guard() has no option approvalTimeout.'],
    [(tacho) => tacho.guard(run, {} as { name: string })(1), 'guard() needs the name of the tool.'],
    [
      (tacho) => tacho.guardedCall({ name: 'a', input: {}, call: run, ...misspelt }),
      'guardedCall() has no option approvalTimeout.',
    ],
    [(tacho) => tacho.decide({ toolName: 'a', name: 'b' } as { toolName: string }), 'decide() has no option name.'],
    [(tacho) => tacho.decide({ toolName: 'a' }, misspelt), 'decide() has no option approvalTimeout.'],
    [(tacho) => tacho.authorize({ name: 'a' } as unknown as { toolName: string }), 'authorize() has no option name.'],
    [(tacho) => tacho.score('r', 'quality', 1, { event: 'x' } as object), 'A score has no option event.'],
    [(tacho) => tacho.startRun().score('quality', 1, { eventID: 'x' } as object), 'A score has no option eventID.'],
    [
      (tacho) => tacho.reportIssue({ detectionType: 'X', details: {} } as { detectionType: string }),
      'reportIssue() has no option details.',
    ],
    [(tacho) => tacho.configuration.ready(), 'configuration has no option refresh.', { configuration: { refresh: 1 } }],
    [(tacho) => tacho.decide({ toolName: 'a' }), 'guard has no option loops.', { guard: { loops: false } }],
    [(tacho) => tacho.decide({ toolName: 'a' }), 'guard.loop has no option count.', { guard: { loop: { count: 3 } } }],
    [(tacho) => tacho.decide({ toolName: 'a' }), 'guard.budget has no option usd.', { guard: { budget: { usd: 3 } } }],
  ]
  for (const [act, message, options] of cases) {
    const said: string[] = []
    const fake = fakeTacho({
      ...options,
      onDiagnostic: ({ code, message }) => code === 'invalid_option' && said.push(message),
    })
    await fake.tacho.run(() => act(fake.tacho))
    await fake.close()
    assert.deepEqual(said, [message])
  }
})

test('numbers that JSON cannot express keep their mark', async () => {
  const fake = fakeTacho()
  const payload = { none: NaN, most: [Infinity, -Infinity, 1.5], date: new Date(NaN) }
  await fake.tacho.run((run) => void run.step('a', payload))
  // A `toJSON` makes the SDK copy the payload in another way.
  await fake.tacho.run((run) => void run.step('b', { ...payload, more: { toJSON: () => NaN } }))
  const marks = { none: '[NaN]', most: ['[Infinity]', '[-Infinity]', 1.5] }
  for (const event of await fake.events())
    if (event.label.length === 1) assert.partialDeepStrictEqual(event.payload, marks)
  await fake.close()
})
