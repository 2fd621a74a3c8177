/**
 * `tacho demo --live`: simulates agents that keep working: three runs at a time, event by event, in real time. Some
 * runs ask a person, wait for the decision and act on it.
 */
import type { EventInput } from '@tacho/contract/record/event.ts'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { chance, startStory, type Agent, type DemoRun, type ToolPlan } from './story.ts'
import { type Plot } from './demo-runs.ts'
import * as shop from './shop.ts'

export interface LiveStage {
  seed: string
  record: (events: EventInput[]) => Promise<unknown>
  /** Asks a person about a call. Resolves to the id of the request, and later to the outcome. */
  ask: (runId: string, plan: ToolPlan, hash: string) => Promise<{ id: string; outcome: Promise<Outcome> }>
  onEnd: (run: { runId: string; about: string }) => void
  /** Longest pause between two events. */
  longestPauseMs?: number
}

export type Outcome = 'approved' | 'rejected'

const RUNS_AT_ONCE = 3
const LONGEST_PAUSE_MS = 4_000
/** One in this many runs asks a person. */
const ASKING = 6
const MOST_ASKING = 3
const PLOTS: readonly [Cast, ...Cast[]] = [
  { about: 'a refund, with policy and e-mail', plot: shop.refund },
  { about: 'where is my order', plot: shop.lookup },
  { about: 'a nightly check', plot: shop.lowStock, agent: shop.STOCK },
  { about: 'the customer changes their mind', plot: shop.changedMind },
  { about: 'a loop of failing calls', plot: shop.wrongOrder },
  { about: 'a refund that a policy blocks', plot: shop.blockedRefund },
  { about: 'the payment provider is down', plot: shop.paymentDown },
]

interface Cast {
  about: string
  plot: Plot
  agent?: Agent
}

/** Runs until the signal; then its open runs end as cancelled. */
export async function playLive(stage: LiveStage, signal: AbortSignal): Promise<void> {
  const next = numbers()
  // Runs that wait for a person do not delay others.
  const asking = new Set<Promise<void>>()
  const lane = async (): Promise<void> => {
    while (!signal.aborted) {
      const number = next()
      if (number % ASKING === 0 && asking.size < MOST_ASKING) {
        const run = playAsking(stage, number, signal).then(stage.onEnd)
        const held: Promise<void> = run.finally(() => asking.delete(held))
        asking.add(held)
        // `Promise.all` below rejects with the error, which ends the demo.
        held.catch(() => undefined)
      } else stage.onEnd(await playPlot(stage, number, signal))
    }
  }
  await Promise.all(Array.from({ length: RUNS_AT_ONCE }, lane))
  await Promise.all(asking)
}

function numbers(): () => number {
  let last = 0
  return () => (last += 1)
}

async function playPlot(stage: LiveStage, number: number, signal: AbortSignal) {
  const runId = `demo-${stage.seed}-live-${number}`
  const { about, plot, agent = shop.SUPPORT } = chance(runId).pick(PLOTS)
  await play(stage, eventsOf(runId, agent, plot), signal)
  return { runId, about }
}

async function playAsking(stage: LiveStage, number: number, signal: AbortSignal) {
  const runId = `demo-${stage.seed}-live-${number}`
  const random = chance(`${runId}-refund`)
  const amount = random.between(210, 990)
  const input = { orderId: `A-${random.between(10_000, 99_999)}`, item: 'road bike', amount, reason: 'broken' }
  const plan = { toolName: 'refund_payment', input }
  const hash = inputHash(plan.toolName, plan.input)
  const { id, outcome } = await stage.ask(runId, plan, hash)
  const asked = { inputHash: hash, approvalId: id }
  const before = eventsOf(runId, shop.SUPPORT, shop.largeRefund(plan, asked, null))
  await play(stage, before, signal, false)
  const decided = await outcome
  const all = eventsOf(runId, shop.SUPPORT, shop.largeRefund(plan, asked, decided))
  await play(stage, all.slice(before.length), signal)
  return { runId, about: `a large refund, ${decided}` }
}

function eventsOf(runId: string, agent: Agent, plot: Plot): EventInput[] {
  const run: DemoRun = { runId, about: '', events: [] }
  const random = chance(runId)
  plot(startStory({ runId, sessionId: null, agent }, random, run.events), random)
  return run.events
}

/** Records events at the pace of their times. `ends`: closes an interrupted run. */
async function play(stage: LiveStage, events: readonly EventInput[], signal: AbortSignal, ends = true): Promise<void> {
  const { longestPauseMs = LONGEST_PAUSE_MS } = stage
  let last = events[0]?.timestamp ?? 0
  for (const event of events) {
    if (signal.aborted) break
    await sleep(Math.min(longestPauseMs, event.timestamp - last), undefined, { signal }).catch(() => undefined)
    last = event.timestamp
    await stage.record([{ ...event, timestamp: Date.now() }])
  }
  const [first] = events
  const isClosed = events.at(-1)?.eventType === 'SESSION_OUTCOME' && !signal.aborted
  if (isClosed || !ends || !first) return
  const payload = { status: 'CANCELLED' }
  const outcome = { eventId: `${first.runId}-end`, eventType: 'SESSION_OUTCOME', label: 'CANCELLED', payload }
  await stage.record([{ ...first, ...outcome, timestamp: Date.now() }])
}
