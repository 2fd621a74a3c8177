/** Guarded calls inside a guarded call, such as an agent that is a tool. The tape answers only the outer call. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Tacho } from '@tacho/sdk'
import { fakeTacho } from '@tacho/sdk/testing'
import { factsOf, openPricing, spentIn } from '../../src/record/experiment/run-facts.ts'
import { readExpectations, unfulfilled } from '../../src/record/tape/expectations.ts'
import { Cursor } from '../../src/record/tape/cursor.ts'
import { ReplayHost } from '../../src/record/tape/host.ts'
import { recordedSteps } from '../../src/record/tape/recorded-steps.ts'
import type { TapeStep } from '../../src/record/tape/tape.ts'
import { madeTape, readBack } from './made-tape.ts'

const WARN = {
  policyId: 'all',
  name: 'all',
  version: '1',
  condition: 'true',
  severity: 'LOW',
  action: 'WARN',
  onError: 'act',
} as const

/** The inner agent asks a model, and calls two tools at the same time. */
async function agent(tacho: Tacho, ran: string[], twist = ''): Promise<void> {
  const look = tacho.guard(({ n }: { n: number }) => void ran.push(`look ${n}`), { name: 'look' })
  const helper = tacho.guard(
    async ({ task }: { task: string }) => {
      ran.push(task)
      // Recorded without an answer: the replay does not need one.
      tacho.record({ type: 'LLM_CALL', label: 'm', payload: { model: 'm', messages: ['inside'] } })
      await Promise.all([look({ n: 1 }), look({ n: 2 })])
      return 'done'
    },
    { name: 'helper' },
  )
  await tacho.run(async () => {
    await Promise.all([helper({ task: 'one' }), helper({ task: 'two' })])
    await look({ n: twist === '' ? 1 : 7 })
  })
}

test('a call is answered whole: what it did inside is not asked again, and what follows is compared', async (t) => {
  const fake = fakeTacho({ agentName: 'A', deployedPolicies: [WARN] })
  await fake.tacho.configuration.ready()
  const ran: string[] = []
  await agent(fake.tacho, ran)
  assert.equal(ran.length, 7)
  const { steps, obstacles } = recordedSteps(await fake.events())
  await fake.close()
  assert.deepEqual(obstacles, [])
  const tape = readBack(madeTape(steps, { agent: 'A', policies: [WARN] }))
  assert.equal(tape.steps.filter(({ within }) => within !== undefined).length, 10)
  t.after(() => delete process.env['TACHO_REPLAY'])
  for (const twist of ['', 'other']) {
    const host = new ReplayHost(tape, { mode: 'strict', ignored: [] })
    process.env['TACHO_REPLAY'] = await host.start()
    const replayedTacho = new Tacho({ apiKey: 'replay', agentName: 'A', onDiagnostic: () => undefined })
    const again: string[] = []
    await agent(replayedTacho, again, twist).catch(() => undefined)
    await replayedTacho.shutdown()
    await host.close()
    assert.deepEqual(again, [], 'no tool ran')
    const { departure } = host.result()
    if (twist === '') assert.equal(departure?.sentence, undefined)
    else assert.match(String(departure?.sentence), /the tape has look \{"n":1\}, the agent asks look \{"n":7\}/)
  }
})

test('an experiment counts, before and after, only what a replay can do: nothing inside of a guarded call', async () => {
  const pricing = await openPricing()
  const step = (number: number, within?: number) => ({
    step: number,
    from: number,
    to: number,
    ...(within && { within }),
  })
  const model = {
    kind: 'model',
    model: 'm',
    usage: { promptTokens: 10, completionTokens: 5 },
    cost: 0.25,
    latency: 7,
  } as const
  const tool = { kind: 'tool', tool: 'helper', input: {}, outcome: 'returned', output: 1 } as const
  const outer: TapeStep[] = [
    { ...step(1), ...model },
    { ...step(2), ...tool },
  ]
  const whole: TapeStep[] = [...outer, { ...step(3, 2), ...model }, { ...step(4, 2), ...tool }]
  const facts = (steps: TapeStep[]) => factsOf({ steps, outcome: 'COMPLETED', scores: {} }, pricing)
  const before = await facts(whole)
  assert.deepEqual(before, await facts(outer))
  assert.partialDeepStrictEqual(before, { steps: 2, tokens: 15, cost: 0.25, modelMs: 7 })
  // Calls without usage or a price have no known cost.
  const { usage: _, cost: __, ...silent } = { ...model, ...step(3) }
  assert.partialDeepStrictEqual(await facts([...outer, silent]), { tokens: null, cost: null })
  const failed = { ...silent, error: { message: 'overloaded' } }
  assert.partialDeepStrictEqual(await facts([...outer, failed]), { tokens: 15, cost: 0.25 })
  await pricing.close()
})

test('a budget of cost counts calls without a cost of their own by the price table', async () => {
  const pricing = await openPricing()
  const usage = { promptTokens: 1_000_000, completionTokens: 0 }
  const steps: TapeStep[] = [{ step: 1, kind: 'model', from: 0, to: 0, model: 'gpt-4o', usage }]
  const spent = await spentIn(steps, pricing)
  await pricing.close()
  const outcome = { steps, outcome: 'COMPLETED', milliseconds: 1 }
  const faults = (budget: string) => unfulfilled(readExpectations(`budget: ${budget}`), madeTape(steps), outcome, spent)
  assert.deepEqual(faults('{ cost: 100, tokens: 1000000 }'), [])
  assert.match(faults('{ cost: 0.01 }').join(), /^a cost of [\d.]+ is more than 0\.01$/)
  assert.deepEqual(faults('{ tokens: 999999 }'), ['1000000 tokens are more than 999999'])
})

test('a tape of a stranger, whose steps are inside of each other, ends no cursor', () => {
  const step = (number: number, within: number) => {
    const timed = { step: number, from: number, to: number, within }
    return { ...timed, kind: 'tool', tool: 'look', input: { number }, outcome: 'returned', output: 1 } as const
  }
  const steps = Array.from({ length: 50_000 }, (_, at) => step(at + 1, at === 0 ? 50_000 : at))
  const cursor = new Cursor(readBack(madeTape(steps)), { mode: 'strict', ignored: [] })
  assert.partialDeepStrictEqual(cursor.tool({ tool: 'look', input: { number: 1 } }), { answer: 'returned' })
})
