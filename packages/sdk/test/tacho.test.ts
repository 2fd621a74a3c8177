import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { Tacho, type Run } from '../src/index.ts'
import { fakeTacho } from '../src/testing/fake-tacho.ts'
import { startScriptedServer } from './scripted-server.ts'
import { acceptAll, simulate } from './simulation.ts'

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

for (const [title, begin] of Object.entries({
  run: (tacho, act) => tacho.run(act),
  withRun: (tacho, act) => tacho.withRun({ runId: 'own-id' }, act),
  startRun(tacho, act) {
    const run = tacho.startRun()
    return run.within(() => act(run)).then(() => run.end())
  },
} satisfies Record<string, (tacho: Tacho, act: (run: Run) => Promise<unknown>) => Promise<unknown>>)) {
  for (const [works, labels] of [
    [3_000, ['run started', 'gpt-5', 'completed']],
    [499, ['gpt-5', 'completed']],
  ] as const) {
    test(`${title}: ${works} ms of work, then one model call: it began when it was entered`, async () => {
      const { runtime, pass, now, requests } = simulate(acceptAll)
      const tacho = new Tacho({ apiKey: 'key', baseUrl: 'http://127.0.0.1:9', flushIntervalMs: 0 }, runtime)
      const entered = now()
      const ended = begin(tacho, async (run) => {
        await new Promise<void>((resolve) => void runtime.timer(works, resolve))
        run.llmCall({ model: 'gpt-5', latency: 10 })
      })
      await pass(works)
      await ended
      void tacho.flush()
      await pass(1_000)
      const events = requests.flatMap((request) => request.events)
      assert.deepEqual(
        events.map(({ label }) => label),
        labels,
      )
      const late = labels.length === 3 ? 0 : works
      assert.deepEqual([events[0]?.timestamp, events.at(-1)?.timestamp], [entered + late, entered + works])
      assert.equal(events[0]?.spanId, events.at(-1)?.spanId)
    })
  }
}

test('a run that is continued, or not sampled, says nothing of a late start', async () => {
  const { runtime, pass, requests } = simulate(acceptAll)
  const options = { apiKey: 'key', baseUrl: 'http://127.0.0.1:9', flushIntervalMs: 0 }
  const tacho = new Tacho(options, runtime)
  const unsampled = new Tacho({ ...options, sampleRate: 0 }, runtime)
  const begun = tacho.startRun()
  begun.step('begun')
  const runs = [tacho.resume(begun.toHandle()), tacho.startRun({ runId: 'elsewhere' }), unsampled.startRun()]
  await pass(3_000)
  for (const run of runs) run.end()
  assert.deepEqual(unsampled.counters().dropped, {})
  void tacho.flush()
  void unsampled.flush()
  await pass(1_000)
  const labels = requests.flatMap(({ events }) => events.map(({ label }) => label))
  assert.deepEqual(labels, ['begun', 'completed', 'completed', 'completed'])
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
    span: () => run.span('look up', (span) => span.set(many)),
    end: () => run.end('COMPLETED', many),
    annotate: () => run.annotate(many),
  }
  for (const [name, call] of Object.entries(calls)) {
    reads = 0
    call()
    assert.ok(reads < 100_000, `${name} read ${reads} keys`)
  }
})

/** The events of a run whose work continues after its call has returned. */
async function recordedBy(act: (tacho: Tacho) => unknown) {
  const service = fakeTacho({ onDiagnostic: () => undefined })
  try {
    await act(service.tacho)
    return (await service.events()).map(({ eventType, label }) => `${eventType} ${label}`)
  } finally {
    await service.close()
  }
}

test('the span of a generator ends with its last step, and holds what its body records', async () => {
  const recorded = await recordedBy((tacho) =>
    tacho.run((run) => {
      const numbers = run.span('count', function* () {
        run.step('one')
        yield 1
        run.step('two')
        yield 2
      })
      run.step('made')
      assert.deepEqual([...numbers], [1, 2])
      run.step('after')
    }),
  )
  assert.deepEqual(recorded, [
    'AGENT_STEP made',
    'AGENT_STEP one',
    'AGENT_STEP two',
    'AGENT_STEP count',
    'AGENT_STEP after',
    'SESSION_OUTCOME completed',
  ])
})

test('the span of a lazy thenable begins its work once, in the span, and ends with it', async () => {
  let works = 0
  const recorded = await recordedBy((tacho) =>
    tacho.run(async (run) => {
      const query = run.span('query', () => ({
        // oxlint-disable-next-line unicorn/no-thenable
        then(onValue: (rows: number) => unknown, onError: (error: unknown) => unknown) {
          works++
          tacho.record({ type: 'AGENT_STEP', label: 'inside' })
          return Promise.resolve(3).then(onValue, onError)
        },
      }))
      run.step('made')
      assert.equal(works, 0)
      assert.equal(await query, 3)
    }),
  )
  assert.equal(works, 1)
  const query = ['AGENT_STEP inside', 'AGENT_STEP query']
  assert.deepEqual(recorded, ['AGENT_STEP made', ...query, 'SESSION_OUTCOME completed'])
})

test('a run of a generator ends with its last step: completed, failed, or left early', async () => {
  const play = (use: (steps: AsyncGenerator<number>) => Promise<unknown>) =>
    recordedBy(async (tacho) => {
      const steps = await tacho.run(async function* (run) {
        run.step('begun')
        yield 1
        tacho.record({ type: 'AGENT_STEP', label: 'inside' })
        throw new Error('broken')
      })
      await use(steps)
    })
  const failed = await play((steps) =>
    assert.rejects(
      steps.next().then(() => steps.next()),
      /broken/,
    ),
  )
  assert.deepEqual(failed, ['AGENT_STEP begun', 'AGENT_STEP inside', 'SESSION_OUTCOME failed'])
  const left = await play(async (steps) => {
    for await (const _ of steps) break
  })
  assert.deepEqual(left, ['AGENT_STEP begun', 'SESSION_OUTCOME cancelled'])
  assert.deepEqual(await play(async () => undefined), [])
})

test("a span lasts as long as another realm's promise, and a lazy promise begins once, when it is awaited", async () => {
  const failures: unknown[] = []
  let begun = 0
  class Lazy extends Promise<number> {
    #promise: Promise<number> | undefined
    constructor() {
      super((resolve) => resolve(0))
    }
    // oxlint-disable-next-line unicorn/no-thenable
    override then<A = number, B = never>(
      onValue?: ((value: number) => A | PromiseLike<A>) | null,
      onError?: ((error: unknown) => B | PromiseLike<B>) | null,
    ) {
      this.#promise ??= Promise.resolve(++begun)
      return this.#promise.then(onValue, onError)
    }
    static override get [Symbol.species]() {
      return Promise
    }
  }
  const fake = fakeTacho()
  await fake.tacho.run(async (run) => {
    const foreign = runInNewContext('Promise.reject(new RangeError("foreign"))') as Promise<never>
    // Not awaited here: the span must notice the rejection by itself.
    const same = run.span('foreign', () => foreign)
    assert.equal(same, foreign)
    await same.catch((error: unknown) => failures.push(error))
    const lazy = run.span('lazy', () => new Lazy())
    assert.equal(begun, 0)
    assert.deepEqual([await lazy, await lazy], [1, 1])
  })
  const events = await fake.events()
  await fake.close()
  assert.equal(failures.length, 1)
  const spans = events.filter(({ eventType }) => eventType === 'AGENT_STEP')
  assert.deepEqual(
    spans.map(({ label }) => label),
    ['foreign', 'lazy'],
  )
  assert.match(String(spans[0]?.payload['error']), /foreign/)
})
