/**
 * What newly stored events of one environment change, gathered over a transaction and written once at its end.
 * Only events that were really inserted are counted, in the order they were stored.
 */
import type { RunOutcome } from '@tacho/contract/run.ts'
import type { NewEvent } from '../events.ts'
import { addUsage, noUsage, type UsageSums } from './sums.ts'

export interface Tally {
  /** By internal run id. */
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

/** One newly stored event: `run` and `agentId` are the internal ids of its run and of that run's agent. */
export interface Stored {
  run: string
  agentId: string
  seq: number
  event: NewEvent
}

const HOUR_MS = 3_600_000

export function newTally(): Tally {
  return { runs: new Map(), hours: new Map() }
}

export function countStored(tally: Tally, { run, agentId, seq, event }: Stored): void {
  const change = runChange(tally, run)
  change.events++
  if (event.time < change.firstTime) change.firstTime = event.time
  if (event.time > change.lastTime) change.lastTime = event.time
  change.sessionId ??= event.sessionId
  if (event.outcome !== null) change.outcome ??= { status: event.outcome, time: event.time, seq }
  const hour = hourChange(tally, Math.floor(event.time / HOUR_MS) * HOUR_MS, agentId, event.usage?.model ?? '')
  hour.events++
  if (event.usage !== null) {
    addUsage(change, event.usage)
    addUsage(hour, event.usage)
  }
}

export function countDifferingRetry(tally: Tally, run: string): void {
  runChange(tally, run).differingRetries++
}

function runChange(tally: Tally, run: string): RunChange {
  let change = tally.runs.get(run)
  if (change === undefined) {
    const times = { firstTime: Infinity, lastTime: -Infinity }
    change = { events: 0, ...times, sessionId: null, outcome: null, differingRetries: 0, ...noUsage() }
    tally.runs.set(run, change)
  }
  return change
}

function hourChange(tally: Tally, hour: number, agentId: string, model: string): HourChange {
  const key = `${hour} ${agentId} ${model}`
  let change = tally.hours.get(key)
  if (change === undefined) {
    change = { hour, agentId, model, events: 0, ...noUsage() }
    tally.hours.set(key, change)
  }
  return change
}
