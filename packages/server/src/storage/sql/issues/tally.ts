/**
 * What newly stored events of one environment change, gathered over a transaction and written once at its end.
 * Only events that were really inserted are counted, in the order they were stored.
 */
import type { RunOutcome } from '@tacho/contract/run.ts'
import type { NewEvent } from '../../events.ts'
import { addUsage, noUsage, type UsageSums } from '../sums.ts'

export interface Tally {
  /** By id of the run: the internal one, or the external one while that is not known. */
  runs: Map<string, RunChange>
  /** By hour, agent and model. */
  hours: Map<string, HourChange>
}

export interface RunChange extends UsageSums {
  events: number
  firstTime: number
  lastTime: number
  /** The first session named. */
  sessionId: string | null
  /** The first valid outcome. */
  outcome: { status: RunOutcome; time: number; seq: number } | null
  differingRetries: number
}

export interface HourChange extends UsageSums {
  hour: number
  agentId: string
  /** '' for events without one. */
  model: string
  events: number
}

const HOUR_MS = 3_600_000

export function newTally(): Tally {
  return { runs: new Map(), hours: new Map() }
}

/** Counts a newly stored event for its run. */
export function countForRun({ runs }: Pick<Tally, 'runs'>, run: string, seq: number, event: NewEvent): void {
  const change = runChange(runs, run)
  change.events++
  if (event.time < change.firstTime) change.firstTime = event.time
  if (event.time > change.lastTime) change.lastTime = event.time
  change.sessionId ??= event.sessionId
  if (event.outcome !== null) change.outcome ??= { status: event.outcome, time: event.time, seq }
  if (event.usage !== null) addUsage(change, event.usage)
}

/** Counts it for its hour; `agentId` is the internal id of its run's agent. */
export function countForHour({ hours }: Pick<Tally, 'hours'>, agentId: string, event: NewEvent): void {
  const hour = Math.floor(event.time / HOUR_MS) * HOUR_MS
  const change = hourChange(hours, hour, agentId, event.usage?.model ?? '')
  change.events++
  if (event.usage !== null) addUsage(change, event.usage)
}

export function countDifferingRetry(tally: Pick<Tally, 'runs'>, run: string): void {
  runChange(tally.runs, run).differingRetries++
}

function runChange(runs: Tally['runs'], run: string): RunChange {
  let change = runs.get(run)
  if (change === undefined) {
    const times = { firstTime: Infinity, lastTime: -Infinity }
    change = { events: 0, ...times, sessionId: null, outcome: null, differingRetries: 0, ...noUsage() }
    runs.set(run, change)
  }
  return change
}

function hourChange(hours: Tally['hours'], hour: number, agentId: string, model: string): HourChange {
  const key = `${hour} ${agentId} ${model}`
  let change = hours.get(key)
  if (change === undefined) {
    change = { hour, agentId, model, events: 0, ...noUsage() }
    hours.set(key, change)
  }
  return change
}
