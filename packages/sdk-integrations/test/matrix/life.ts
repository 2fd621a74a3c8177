/** The rows of docs/integrations/guarded.md about the life of a call, each with the real framework, whole and streamed. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { z } from 'zod'
import { hostRuntime } from '../../../sdk/src/delivery/runtime.ts'
import type { Answer } from '../../src/model-server.ts'
import { openStage, policyFor, TOOL, type Shown, type Stage } from './matrix.ts'

export const AMOUNT = z.object({ order: z.number(), amount: z.number() })

export interface How {
  readonly stream: boolean
  /** Aborts when the caller gives up. */
  readonly signal: AbortSignal
}

interface Life {
  /** Runs an agent whose model is recorded, with the tool TOOL of `{ order: number, amount: number }`. */
  play(stage: Stage, how: How): unknown
  /** The lost calls that are recorded, if the framework cannot have the others in one answer or does not read them. */
  readonly lost?: readonly Lost[]
  /** Whether a lost call ends the agent. */
  readonly endsAtLost?: boolean
  /** Whether arguments are texts, which can be unreadable. Answers of Anthropic contain objects. */
  readonly hasTexts?: boolean
  /** Whether the agent takes an AbortSignal. */
  readonly hasSignal?: boolean
  readonly streams?: boolean
}

type Lost = 'unreadable' | 'unknown_tool' | 'unfit'

const GOOD = { order: 4, amount: 1 }
const UNREADABLE = { name: TOOL, input: {}, text: '{"order":1,"am' }
const LOST: Record<Lost, NonNullable<Answer['toolCalls']>[number]> = {
  unreadable: UNREADABLE,
  unknown_tool: { name: 'teleport', input: { order: 2 } },
  unfit: { name: TOOL, input: { order: 'seven', amount: 1 } },
}
const ASKED: Answer = { toolCalls: [{ name: TOOL, input: GOOD }] }
const DONE: Answer = { text: 'Done.' }
/** Arguments that the length limit cut inside the number 5000. */
const CUT = '{"order":7,"amount":5'
/** Valid JSON from a cut answer: it is unknown whether the amount is complete. */
const MAYBE_CUT = '{"order":7,"amount":5}'

const NO_SIGNAL = { signal: new AbortController().signal }

/** A row that is not about inputs. */
function shown(streams: boolean, check: (t: TestContext, stream: boolean) => Promise<void>): Shown {
  return {
    show(title) {
      for (const stream of streams ? [false, true] : [false]) {
        test(`${title}${stream ? ', streamed' : ''}`, (t) => check(t, stream))
      }
    },
  }
}

export function lifeOf({
  play,
  lost = ['unreadable', 'unknown_tool', 'unfit'],
  endsAtLost = false,
  hasTexts = true,
  hasSignal = true,
  streams = true,
}: Life) {
  return {
    cut: shown(streams, async (t, stream) => {
      for (const text of hasTexts ? [CUT, MAYBE_CUT] : [MAYBE_CUT]) {
        const input = { order: 7, amount: 5 }
        const stage = await openStage(t, [{ isLong: true, toolCalls: [{ name: TOOL, input, text }] }, DONE])
        await stage.tacho.run(() => play(stage, { stream, ...NO_SIGNAL })).catch(() => undefined)
        assert.deepEqual(stage.gotten, [], 'it ran')
        const [call, ...more] = await callsOf(stage)
        assert.deepEqual([call?.['outcome'], call?.['reasonCode'], more], ['never_ran', 'cut', []])
        assert.equal(call?.['arguments'], text)
        const { payload } = await stage.fake.assertEvent('LLM_CALL')
        assert.partialDeepStrictEqual(payload['toolCalls'], [{ name: TOOL, problem: 'cut', arguments: text }])
      }
    }),

    'never reached the tool': shown(streams, async (t, stream) => {
      const all = (Object.keys(LOST) as Lost[]).filter((reason) => hasTexts || reason !== 'unreadable')
      const toolCalls = [...all.map((reason) => LOST[reason]), { name: TOOL, input: GOOD }]
      const stage = await openStage(t, [{ toolCalls }, DONE])
      await stage.tacho.run(async () => void (await play(stage, { stream, ...NO_SIGNAL }))).catch(() => undefined)
      const calls = await callsOf(stage)
      const order = ({ reasonCode }: Record<string, unknown>) => all.indexOf(reasonCode as Lost)
      const neverRan = calls.filter(({ outcome }) => outcome === 'never_ran').toSorted((a, b) => order(a) - order(b))
      assert.deepEqual(
        neverRan.flatMap(({ reasonCode, toolName }) => (reasonCode === undefined ? [] : [[reasonCode, toolName]])),
        lost.map((reason) => [reason, LOST[reason].name]),
      )
      for (const { toolCallId } of neverRan) assert.equal(typeof toolCallId, 'string')
      const unread = neverRan.find(({ reasonCode }) => reasonCode === 'unreadable')
      if (lost.includes('unreadable')) assert.equal(unread?.['arguments'], UNREADABLE.text)
      assert.deepEqual(stage.gotten, endsAtLost ? [] : [GOOD])
      assert.equal(calls.length, toolCalls.length)
    }),

    'gave up': shown(streams, async (t, stream) => {
      for (const leave of hasSignal ? (['signal', 'race'] as const) : (['race'] as const)) {
        const person = Promise.withResolvers<'approve'>()
        const held = Promise.withResolvers<void>()
        const stage = await openStage(t, [ASKED, DONE], {
          deployedPolicies: [policyFor(TOOL, 'true', 'REQUIRE_APPROVAL')],
          approvals: () => (held.resolve(), person.promise),
        })
        const caller = new AbortController()
        const acting = stage.tacho.run(async () => {
          const played = Promise.resolve(play(stage, { stream, signal: caller.signal })).catch(() => undefined)
          await held.promise
          // The run ends, because its caller no longer waits.
          if (leave === 'race') return
          caller.abort()
          await stage.fake.assertEvent('APPROVAL_WITHDRAWN')
          person.resolve('approve')
          await played
          await quiet()
        })
        await acting
        person.resolve('approve')
        await quiet()
        assert.deepEqual(stage.gotten, [], `it ran after its caller had left by ${leave}`)
        await stage.fake.assertEvent('APPROVAL_WITHDRAWN', {
          reason: leave === 'race' ? 'run_ended' : 'aborted',
          toolName: TOOL,
        })
      }
    }),

    forked: shown(false, async (t) => {
      const stage = await openStage(t, [ASKED, DONE])
      stage.fake.setPolicies([policyFor(TOOL, 'true', 'BLOCK')])
      const { now } = hostRuntime
      t.mock.method(hostRuntime, 'now', () => now() + 60_000)
      await stage.tacho.run(() => play(stage, { stream: false, ...NO_SIGNAL }))
      assert.deepEqual(stage.gotten, [], 'it was judged by the policies of before')
      await stage.fake.assertDecision({ action: 'BLOCK', toolName: TOOL })
    }),
  }
}

/** An event of an agent. `agent` is undefined for the agent of the run. */
type Deed = readonly [type: string, agent: string | undefined, what?: unknown]

/** @param start runs the agents First and Second. Second has the tool. @param deeds expected events, without the outcome */
export function handedOff(
  streams: boolean,
  answers: readonly Answer[],
  start: (stage: Stage, how: How) => unknown,
  deeds: readonly Deed[],
): Shown {
  return shown(streams, async (t, stream) => {
    const stage = await openStage(t, answers)
    await stage.tacho.run(async () => void (await start(stage, { stream, ...NO_SIGNAL })))
    const events = await stage.fake.events()
    const found = events.flatMap(({ eventType, payload }): Deed[] => {
      const agent = payload['agent'] as string | undefined
      const { from, to, toolCallId, toolName } = payload
      if (eventType === 'LLM_CALL') return [[eventType, agent]]
      if (eventType === 'HANDOFF') return [[eventType, agent, [from, to, toolCallId]]]
      return eventType === 'TOOL_CALL' ? [[eventType, agent, toolName]] : []
    })
    assert.deepEqual(found, deeds)
    assert.deepEqual(stage.gotten, [GOOD])
  })
}

/** Combines several ways in one row. */
export function together(ways: Readonly<Record<string, Shown>>): Shown {
  return {
    show(title) {
      for (const [name, way] of Object.entries(ways)) way.show(`${title} ${name}`)
    },
  }
}

/** Answers of a model that calls the agent Billing as a tool of this name. Billing then calls TOOL. */
export const delegation = (name: string, member = 'prompt'): readonly Answer[] => [
  { toolCalls: [{ name, input: { [member]: 'Act for me' } }] },
  ASKED,
  DONE,
  DONE,
]

/** Expected events of a call of an agent as a tool. */
export const delegated = (
  agent: string,
  toolName: string,
  toolCallId: string | undefined,
  from = 'Matrix',
): readonly Deed[] => [
  ['LLM_CALL', undefined],
  ['HANDOFF', undefined, [from, agent, toolCallId]],
  ['LLM_CALL', agent],
  ['TOOL_CALL', agent, TOOL],
  ['LLM_CALL', agent],
  ['TOOL_CALL', undefined, toolName],
  ['LLM_CALL', undefined],
]

export { ASKED, DONE }

/** Waits, so that code that still runs has time to act. */
const quiet = () => new Promise((resolve) => void setTimeout(resolve, 200))

async function callsOf({ fake }: Stage) {
  return (await fake.events()).filter(({ eventType }) => eventType === 'TOOL_CALL').map(({ payload }) => payload)
}
