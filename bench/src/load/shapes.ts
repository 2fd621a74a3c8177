/** The events of a request: their runs and times. */
import { randomBytes } from 'node:crypto'
import { BATCH_EVENTS, type Variable } from './events.ts'

export const SHAPES = ['whole-run', 'mixed', 'long-run', 'history'] as const
export type Shape = (typeof SHAPES)[number]

/** One load of one shape. Two loads with the same salt would send the same events. */
export interface Plot {
  shape: Shape
  /** Eight hex digits. */
  salt: string
  /** The times of events of request n, in milliseconds. Default: now. */
  history?: { from: number; perRequestMs: number }
  /** Number of failed calls among a request's events. Default: none. */
  failed?: number
}

export function newPlot(shape: Shape): Plot {
  return { shape, salt: randomBytes(4).toString('hex') }
}

const DAY_MS = 86_400_000

/** A history of this many requests, in order, which begins `ago` days ago and covers `days`. */
export function newHistory(requests: number, { ago, days }: { ago: number; days: number }): Plot {
  const history = { from: Date.now() - ago * DAY_MS, perRequestMs: (days * DAY_MS) / requests }
  return { ...newPlot('history'), history }
}

const LIVE_RUNS = 1_000
const AGENTS = 20

/** In a group of ten requests, one is a run of 100 events, and nine contain eleven shorter runs each. */
const HISTORY_REQUESTS = 10
const SHORT_RUNS = 11
const SHORT_RUN_EVENTS = 9

/** Event `index` of request `n`: its run's number, whether it starts the run, and the outcome if it ends it. */
interface Part {
  run: number
  isFirst: boolean
  outcome: string | null
}

export function partOf(shape: Shape, n: number, index: number): Part {
  const isLast = index === BATCH_EVENTS - 1
  switch (shape) {
    case 'whole-run':
      return { run: n, isFirst: index === 0, outcome: isLast ? 'COMPLETED' : null }
    case 'mixed':
      return { run: scattered(n * BATCH_EVENTS + index) % LIVE_RUNS, isFirst: false, outcome: null }
    case 'long-run':
      return { run: 0, isFirst: false, outcome: null }
    case 'history':
      return historyPart(n, index)
  }
}

/** Numbers of the runs with 100 events, in a history of this many requests. */
export function longRunsOf(requests: number): number[] {
  const count = Math.floor(requests / HISTORY_REQUESTS)
  return Array.from({ length: count }, (_, index) => index * (1 + (HISTORY_REQUESTS - 1) * SHORT_RUNS))
}

function historyPart(n: number, index: number): Part {
  const [group, place] = [Math.floor(n / HISTORY_REQUESTS), n % HISTORY_REQUESTS]
  const first = group * (1 + (HISTORY_REQUESTS - 1) * SHORT_RUNS)
  if (place === 0) return { run: first, isFirst: index === 0, outcome: index === BATCH_EVENTS - 1 ? 'COMPLETED' : null }
  // The eleventh run gets the remaining event.
  const short = Math.min(Math.floor(index / SHORT_RUN_EVENTS), SHORT_RUNS - 1)
  const isLast = index === (short === SHORT_RUNS - 1 ? BATCH_EVENTS : (short + 1) * SHORT_RUN_EVENTS) - 1
  const outcome = short === 0 ? null : short === 1 ? 'FAILED' : 'COMPLETED'
  return {
    run: first + 1 + (place - 1) * SHORT_RUNS + short,
    isFirst: index === short * SHORT_RUN_EVENTS,
    outcome: isLast ? outcome : null,
  }
}

/** A pseudo-random number from `n`. */
function scattered(n: number): number {
  let mixed = Math.imul(n ^ (n >>> 16), 0x45d9f3b)
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x45d9f3b)
  return (mixed ^ (mixed >>> 16)) >>> 0
}

/** The number of requests after which a shape repeats its kinds of steps. */
export const bodiesOf = (shape: Shape): number => (shape === 'history' ? 2 : 1)
export const bodyOf = (shape: Shape, n: number): number => (shape === 'history' && n % HISTORY_REQUESTS > 0 ? 1 : 0)

export function timeOf({ history }: Plot, n: number, index: number): number {
  if (history === undefined) return Date.now() - BATCH_EVENTS + index
  return Math.floor(history.from + n * history.perRequestMs) + index
}

const hex = (value: number, width: number): string => value.toString(16).padStart(width, '0')

export const runIdOf = ({ salt }: Plot, run: number): string => `run-${salt}-${hex(run, 8)}`
export const agentOf = (run: number): number => run % AGENTS

/** The texts of an event. Its id is a UUIDv7, in time order like those of the SDK. */
export function variableOf(plot: Plot, n: number, index: number): Variable {
  const { run } = partOf(plot.shape, n, index)
  const time = timeOf(plot, n, index)
  const at = hex(time, 12)
  return {
    eventId: `${at.slice(0, 8)}-${at.slice(8)}-7${hex(index, 3)}-8${plot.salt.slice(0, 3)}-${plot.salt.slice(3)}${hex(n, 7)}`,
    runId: runIdOf(plot, run),
    sessionId: `session-${hex(run, 8)}`,
    agentId: `agent-${hex(agentOf(run), 2)}`,
    timestamp: String(time),
  }
}
