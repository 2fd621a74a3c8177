/** What the server stores of a load, made without a server: the rows that a bare driver writes beside it. */
import { bodyWriter } from '../load/bodies.ts'
import { MODEL_CALL_USAGE } from '../load/events.ts'
import { agentOf, partOf, type Plot } from '../load/shapes.ts'

export const ENVIRONMENT = '01980000-0000-7000-8000-000000000001'
export const HOUR_MS = 3_600_000

/** How quickly events are recorded, and what each costs the process that records it. */
export interface Recorded {
  eventsPerSecond: number
  /** Processor time, user and system, in microseconds. */
  cpuUsPerEvent: number
}

export interface EventRow {
  run: BareRun
  eventId: string
  time: number
  clientId: string
  sessionId: string
  agentId: string
  agentName: string
  type: string
  label: string
  spanId: string
  schemaVersion: string
  payload: string
}

/** As it is sent. */
type Sent = Record<Exclude<keyof EventRow, 'run' | 'time' | 'type' | 'payload'> | 'runId' | 'eventType', string> & {
  timestamp: number
  payload: { spanId: string }
}

/** A run as far as the bare driver follows it. */
export interface BareRun {
  id: string
  runId: string
  sessionId: string
  agent: number
  startedAt: number
  stored: boolean
}

export interface RunSums {
  run: BareRun
  events: number
  lastTime: number
  outcome: string | null
  calls: number
}

/** Makes the rows of request `n`, of the very texts that a client sends. */
export function rowMaker(plot: Plot): (n: number) => EventRow[] {
  const bodyOf = bodyWriter(plot)
  const runs = new Map<string, BareRun>()
  return (n) => {
    if (plot.shape !== 'mixed') runs.clear()
    const items = JSON.parse(bodyOf(n).toString('latin1')) as Sent[]
    return items.map(({ runId, timestamp, eventType, payload, ...texts }, index) => {
      let run = runs.get(runId)
      if (run === undefined) {
        const { run: number } = partOf(plot.shape, n, index)
        const { sessionId } = texts
        run = {
          id: uuidOf(plot, number),
          runId,
          sessionId,
          agent: agentOf(number),
          startedAt: timestamp,
          stored: false,
        }
        runs.set(runId, run)
      }
      const { spanId } = payload
      return { ...texts, run, time: timestamp, type: eventType, spanId, payload: JSON.stringify(payload) }
    })
  }
}

/** What a commit of these rows adds to each run. */
export function sumsOf(rows: readonly EventRow[]): RunSums[] {
  const sums = new Map<BareRun, RunSums>()
  for (const { run, time, type } of rows) {
    let sum = sums.get(run)
    if (sum === undefined) {
      sum = { run, events: 0, lastTime: time, outcome: null, calls: 0 }
      sums.set(run, sum)
    }
    sum.events++
    sum.lastTime = time
    if (type === 'LLM_CALL') sum.calls++
    if (type === 'SESSION_OUTCOME') sum.outcome = 'COMPLETED'
  }
  return [...sums.values()]
}

/** What it adds to each hour: by agent, with a model or without one. */
export function hoursOf(sums: readonly RunSums[]): { agent: number; hour: number; model: string; events: number }[] {
  const hours = new Map<string, { agent: number; hour: number; model: string; events: number }>()
  for (const { run, lastTime, events, calls } of sums) {
    const hour = lastTime - (lastTime % HOUR_MS)
    for (const [model, count] of [['gpt-5-mini', calls] as const, ['', events - calls] as const]) {
      const key = `${run.agent} ${hour} ${model}`
      const known = hours.get(key)
      if (known) known.events += count
      else hours.set(key, { agent: run.agent, hour, model, events: count })
    }
  }
  return [...hours.values()]
}

/** Tokens and cost of so many model calls, as their payloads say. */
export function usageOf(calls: number): number[] {
  const { promptTokens, completionTokens, totalTokens, costNanos } = MODEL_CALL_USAGE
  return [promptTokens, completionTokens, totalTokens, costNanos].map((each) => each * calls)
}

/** In time order, as the ids of runs are. */
function uuidOf({ salt }: Plot, run: number): string {
  const at = Date.now().toString(16).padStart(12, '0')
  const number = run.toString(16).padStart(12, '0')
  return `${at.slice(0, 8)}-${at.slice(8)}-7${salt.slice(0, 3)}-8${salt.slice(3, 6)}-${number}`
}

export const agentUuid = (agent: number): string => `01980000-0000-7000-8000-${agent.toString(16).padStart(12, '0')}`
