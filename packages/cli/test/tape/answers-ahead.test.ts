/** Answers in advance: a long row of calls takes a few requests, and differences are found at the same step as without. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { Tacho } from '@tacho/sdk'
import { fakeTacho } from '@tacho/sdk/testing'
import { ReplayHost, type HostOptions } from '../../src/record/tape/host.ts'
import { recordedSteps } from '../../src/record/tape/recorded-steps.ts'
import type { ModelStep, Tape } from '../../src/record/tape/tape.ts'
import { madeTape, readBack } from './made-tape.ts'

const CALLS = 300
const WARN = { policyId: 'all', name: 'all', version: '1', condition: 'true', severity: 'LOW', action: 'WARN' }

type Look = (input: { n: number; text?: string }) => Promise<unknown>
type Agent = (look: Look) => Promise<void>

const calls =
  (numbers: Iterable<number>): Agent =>
  async (look) => {
    for (const n of numbers) await look({ n })
  }
const upTo = (end: number, start = 0) => Array.from({ length: end - start }, (_, at) => start + at)

async function runAgent(tacho: Tacho, agent: Agent, ran: number[]): Promise<void> {
  // Tools without a guard, which an agent records by itself, do not count as calls of the tape.
  const startOne = () => tacho.record({ type: 'TOOL_START', label: 'own', payload: { toolName: 'own', input: {} } })
  const look = tacho.guard(({ n }: { n: number }) => (ran.push(n), `seen ${n}`), { name: 'look' })
  await tacho.run(async () => {
    await agent(look)
    for (let own = 0; own < 20; own++) startOne()
  })
}

let tape: Tape
before(async () => (tape = await recorded(calls(upTo(CALLS)))))

async function recorded(agent: Agent): Promise<Tape> {
  const fake = fakeTacho({ agentName: 'A', deployedPolicies: [WARN], guard: { loop: false } })
  await fake.tacho.configuration.ready()
  await runAgent(fake.tacho, agent, [])
  const { steps } = recordedSteps(await fake.events())
  await fake.close()
  return readBack(madeTape(steps, { agent: 'A', policies: [WARN] }))
}

/** Replays the tape with the agent. Returns its requests for answers, the calls that ran, and where it left the tape. */
async function replayed(agent: Agent, options: Partial<HostOptions> = {}, ofTape = tape) {
  const host = new ReplayHost(ofTape, { mode: 'strict', ignored: [], ...options })
  process.env['TACHO_REPLAY'] = await host.start()
  let asked = 0
  const counted = (url: string, init: object) => {
    if (url.endsWith('/replay/tool-calls')) asked++
    return fetch(url, init)
  }
  const tacho = new Tacho({
    apiKey: 'replay',
    agentName: 'A',
    guard: { loop: false },
    // This interval applies to the service only: the SDK sends events to a replay's host at once.
    flushIntervalMs: 60_000,
    fetch: counted,
    onDiagnostic: () => undefined,
  })
  const ran: number[] = []
  try {
    await runAgent(tacho, agent, ran).catch(() => undefined)
    await tacho.shutdown()
    const { departure, events } = host.result()
    return { asked, ran, sentence: departure?.sentence, step: departure?.step, events }
  } finally {
    delete process.env['TACHO_REPLAY']
    await host.close()
  }
}

/** The step of the n-th call. Each call is preceded by its decision. */
const stepOf = (n: number) => 2 * n + 2

test('an unchanged agent asks once for hundreds of calls, gets each answer, and is found equal', async () => {
  const outputs: unknown[] = []
  const { asked, ran, sentence, events } = await replayed(async (look) => {
    for (const n of upTo(CALLS)) outputs.push(await look({ n }))
  })
  assert.deepEqual([ran, sentence], [[], undefined])
  assert.ok(asked < 40, `${asked} requests`)
  assert.deepEqual(
    outputs,
    upTo(CALLS).map((n) => `seen ${n}`),
  )
  assert.equal(events.filter(({ eventType }) => eventType === 'TOOL_CALL').length, CALLS)
})

test('a changed, a missing, a repeated and an additional call are found at their step', async () => {
  for (const [title, numbers, expected] of [
    ['changed', [...upTo(150), 999, ...upTo(CALLS, 151)], [stepOf(150), /the agent asks look \{"n":999\}/]],
    [
      'missing',
      [...upTo(150), ...upTo(CALLS, 151)],
      [stepOf(150), /has look \{"n":150\}, the agent asks look \{"n":151\}/],
    ],
    ['repeated', [...upTo(150), 149, ...upTo(CALLS, 150)], [stepOf(150), /the agent asks look \{"n":149\}/]],
    ['more', [...upTo(CALLS), 7], [2 * CALLS + 2, /the tape has ended, the agent asks look \{"n":7\}/]],
    ['ended', upTo(150), [stepOf(150), /has look \{"n":150\}, the agent ended with COMPLETED/]],
    ['ended before the last', upTo(CALLS - 1), [stepOf(CALLS - 1), /the agent ended with COMPLETED/]],
  ] as [string, number[], [number, RegExp]][]) {
    const { step, sentence, ran } = await replayed(calls(numbers))
    assert.deepEqual([step, ran], [expected[0], []], `${title}: ${sentence}`)
    assert.match(String(sentence), expected[1], title)
  }
})

test('a request to a model in the middle of a row is found at the step of the call that should have come', async () => {
  const asks: Agent = async (look) => {
    await calls(upTo(120))(look)
    const url = `${process.env['TACHO_REPLAY']}/openai/v1/chat/completions`
    const reply = await fetch(url, {
      method: 'POST',
      body: JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }] }),
    })
    assert.match(await reply.text(), new RegExp(`step ${stepOf(120)}: .*the agent asks a model`))
  }
  assert.equal((await replayed(asks)).step, stepOf(120))
  const { steps } = tape
  const [last] = steps.slice(-1) as [Tape['steps'][number]]
  const messages = [{ role: 'user', content: 'Hi' }]
  const model: ModelStep = {
    ...last,
    kind: 'model',
    messages,
    output: { role: 'assistant', content: 'Hello' },
  } as never
  const end = { ...last, step: last.step + 1, from: last.from + 1, to: last.to + 1 }
  const whole = readBack(madeTape([...steps.slice(0, -1), model, end], { policies: [WARN] }))
  const unchanged: Agent = async (look) => {
    await calls(upTo(CALLS))(look)
    const url = `${process.env['TACHO_REPLAY']}/openai/v1/chat/completions`
    assert.equal((await fetch(url, { method: 'POST', body: JSON.stringify({ messages }) })).status, 200)
  }
  assert.equal((await replayed(unchanged, {}, whole)).sentence, undefined)
})

test('calls at once are answered once each, and two clients in turn find the same tape', async () => {
  const parallel: Agent = async (look) => {
    await calls(upTo(100))(look)
    await Promise.all(upTo(200, 100).map((n) => look({ n })))
    await calls(upTo(CALLS, 200))(look)
  }
  // Concurrent calls are requested in their order, so they match like successive calls.
  assert.equal((await replayed(parallel)).sentence, undefined)
  assert.equal((await replayed(parallel, {}, await recorded(parallel))).sentence, undefined)
  const inTurn: Agent = async (look) => {
    const other = new Tacho({ apiKey: 'replay', agentName: 'B', guard: { loop: false }, onDiagnostic: () => undefined })
    const otherLook = other.guard((_: object) => assert.fail('it ran'), { name: 'look' })
    for (const n of upTo(CALLS)) {
      if (n % 50 < 40) await look({ n })
      else await other.run(() => otherLook({ n }))
    }
    await other.shutdown()
  }
  assert.equal((await replayed(inTurn)).sentence, undefined)
})

test('a call of two clients that have its answer both is found, as after a fork', async () => {
  const again: Agent = async (look) => {
    await calls(upTo(50))(look)
    const other = new Tacho({ apiKey: 'replay', agentName: 'B', guard: { loop: false }, onDiagnostic: () => undefined })
    const otherLook = other.guard((_: object) => assert.fail('it ran'), { name: 'look' })
    await other.run(async () => {
      for (const n of upTo(60, 50)) await otherLook({ n })
    })
    await other.shutdown()
    await calls(upTo(CALLS, 50))(look)
  }
  const { step, sentence } = await replayed(again)
  assert.deepEqual([step, /two clients/.test(String(sentence))], [stepOf(50), true], String(sentence))
})

test('equal calls get their answers in their order', async () => {
  const polled = async (look: (input: { n: number }) => Promise<unknown>) => {
    const outputs: unknown[] = []
    for (const _ of upTo(100)) outputs.push(await look({ n: 1 }))
    return outputs
  }
  let count = 0
  const fake = fakeTacho({ agentName: 'A', deployedPolicies: [WARN], guard: { loop: false } })
  await fake.tacho.configuration.ready()
  const counting = fake.tacho.guard((_: { n: number }) => ++count, { name: 'look' })
  await fake.tacho.run(() => polled(counting))
  const { steps } = recordedSteps(await fake.events())
  await fake.close()
  let outputs: unknown[] = []
  const again: Agent = async (look) => void (outputs = await polled(look))
  const ofTape = readBack(madeTape(steps, { agent: 'A', policies: [WARN] }))
  for (const mode of ['strict', 'tools'] as const) {
    assert.equal((await replayed(again, { mode }, ofTape)).sentence, undefined)
    assert.deepEqual(outputs, upTo(101, 1))
  }
})

test('from a step on, calls run for real, and before it the tape answers', async () => {
  for (const mode of ['strict', 'tools'] as const) {
    const { ran, sentence } = await replayed(calls(upTo(CALLS)), { mode, from: stepOf(150) })
    assert.deepEqual([ran, sentence], [upTo(CALLS, 150), undefined], mode)
    const early = await replayed(calls([...upTo(100), ...upTo(CALLS, 101)]), { mode: 'strict', from: stepOf(150) })
    assert.deepEqual([early.step, early.ran], [stepOf(100), []])
  }
})

test('with live models, calls that the tape does not have get stubs, run or end the replay', async () => {
  const other = calls([...upTo(100), 999, ...upTo(CALLS, 100)])
  const stubs = new Map([['look', 'stub']])
  const stubbed = await replayed(other, { mode: 'tools', stubs })
  assert.deepEqual([stubbed.ran, stubbed.sentence], [[], undefined])
  const readOnly = await replayed(other, { mode: 'tools', readOnly: new Set(['look']) })
  assert.deepEqual([readOnly.ran, readOnly.sentence], [[999], undefined])
  assert.match(String((await replayed(other, { mode: 'tools' })).sentence), /the agent asks look \{"n":999\}/)
})

test('an input of a stranger that no client can send takes no answer from the calls around it', async () => {
  const odd = tape.steps.map((step) =>
    step.step === stepOf(50) ? { ...step, input: { n: 50, text: '\ud800' } } : step,
  )
  const { step, sentence } = await replayed(calls(upTo(CALLS)), {}, readBack({ ...tape, steps: odd as Tape['steps'] }))
  assert.equal(step, stepOf(50), String(sentence))
})

test('inputs that may differ, and masked ones, are compared by the host', async () => {
  const numbered: Agent = async (look) => {
    for (const n of upTo(100)) await look({ n, text: `${Math.random()}` })
  }
  const random = await recorded(numbered)
  assert.equal((await replayed(numbered, { ignored: [['tool', 'input', 'text']] }, random)).sentence, undefined)
  const withSecrets: Agent = async (look) => {
    for (const n of upTo(100)) await look({ n, text: 'password=correct-horse-9' })
  }
  const masked = await recorded(withSecrets)
  assert.ok(JSON.stringify(masked.steps).includes('[masked'))
  assert.equal((await replayed(withSecrets, {}, masked)).sentence, undefined)
})
