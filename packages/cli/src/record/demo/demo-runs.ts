/** The runs that `tacho demo` records. Pure: they depend only on the seed and the time. */
import { chance, startStory, type Agent, type DemoRun } from './story.ts'
import * as shop from './shop.ts'

export type Plot = typeof shop.refund

interface Planned {
  plot: Plot
  about: string
  agent?: Agent
  session?: 'returning-customer'
  /** Time of its last event, in minutes before now. */
  endedMinutesAgo: number
}

export const LONG_RUN_EVENTS = 5_000
/** The error of runs for each of which the demo reports an issue. */
export const PAYMENT_DOWN = 'the payment provider is down'
export const LOOP = 'a loop of failing calls'
export const BLOCKED = 'a refund that a policy blocks'

const PLAN: readonly Planned[] = [
  {
    plot: shop.stocktake(LONG_RUN_EVENTS),
    about: `a stocktake of ${LONG_RUN_EVENTS.toLocaleString('en-US')} events`,
    agent: shop.STOCK,
    endedMinutesAgo: 26 * 60,
  },
  {
    plot: shop.refund,
    about: 'a refund, with policy and e-mail',
    session: 'returning-customer',
    endedMinutesAgo: 1_210,
  },
  { plot: shop.lookup, about: 'where is my order', session: 'returning-customer', endedMinutesAgo: 1_195 },
  {
    plot: shop.paymentDown,
    about: PAYMENT_DOWN,
    session: 'returning-customer',
    endedMinutesAgo: 1_130,
  },
  { plot: shop.lowStock, about: 'a nightly check', agent: shop.STOCK, endedMinutesAgo: 600 },
  { plot: shop.lookup, about: 'where is my order', endedMinutesAgo: 340 },
  { plot: shop.wrongOrder, about: LOOP, endedMinutesAgo: 221 },
  { plot: shop.changedMind, about: 'the customer changes their mind', endedMinutesAgo: 150 },
  { plot: shop.blockedRefund, about: BLOCKED, endedMinutesAgo: 75 },
  { plot: shop.refund, about: 'a refund, with policy and e-mail', endedMinutesAgo: 33 },
  { plot: shop.waitingForCustomer, about: 'still running', endedMinutesAgo: 2 },
  { plot: shop.waitingForCustomer, about: 'still running', endedMinutesAgo: 0 },
  { plot: shop.paymentDown, about: PAYMENT_DOWN, endedMinutesAgo: 44 * 60 },
  { plot: shop.wrongOrder, about: LOOP, endedMinutesAgo: 40 * 60 },
  { plot: shop.paymentDown, about: PAYMENT_DOWN, endedMinutesAgo: 31 * 60 },
  { plot: shop.wrongOrder, about: LOOP, endedMinutesAgo: 0 },
]

/** @param now in milliseconds. Run ids contain the seed, so the same seed gives the same ids. */
export function demoRuns(seed: string, now: number): DemoRun[] {
  return PLAN.map(({ plot, about, agent = shop.SUPPORT, session, endedMinutesAgo }, index) => {
    const runId = `demo-${seed}-${String(index + 1).padStart(2, '0')}`
    const run: DemoRun = { runId, about, events: [] }
    const sessionId = session === undefined ? null : `demo-${seed}-${session}`
    const random = chance(runId)
    plot(startStory({ runId, sessionId, agent }, random, run.events), random)
    return placed(run, now - endedMinutesAgo * 60_000)
  })
}

/** Runs of two versions of the prompt: the second one fails more often. */
export function versionRuns(seed: string, now: number, versionIds: readonly [string, string]): DemoRun[] {
  return versionIds.flatMap((promptVersionId, version) =>
    Array.from({ length: VERSION_RUNS }, (_, index): DemoRun => {
      const runId = `demo-${seed}-prompt-v${version + 1}-${String(index + 1).padStart(2, '0')}`
      const plot = VERSION_PLOTS[version]?.[index % 6] ?? shop.refund
      const run: DemoRun = { runId, about: `prompt version ${version + 1}`, events: [] }
      const random = chance(runId)
      const prompt = { promptVersionId, systemPrompt: shop.systemPrompt(version) }
      plot(startStory({ runId, sessionId: null, agent: shop.SUPPORT, ...prompt }, random, run.events), random)
      const hoursAgo = version === 0 ? 46 - index : 22 - index
      return placed(run, now - hoursAgo * 3_600_000)
    }),
  )
}

const VERSION_RUNS = 18
const VERSION_PLOTS: readonly (readonly Plot[])[] = [
  [shop.refund, shop.lookup, shop.refund, shop.lookup, shop.refund, shop.changedMind],
  [shop.refund, shop.hastyRefund, shop.lookup, shop.hastyRefund, shop.refund, shop.wrongOrder],
]

/** Moves a run in time, so that its last event happens at `end`. */
export function placed(run: DemoRun, end: number): DemoRun {
  const last = run.events.at(-1)?.timestamp ?? 0
  return { ...run, events: run.events.map((event) => ({ ...event, timestamp: event.timestamp - last + end })) }
}
