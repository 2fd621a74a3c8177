/** What the new events of a transaction add to usage, latencies and the results of prompt versions. */
import type { NewEvent } from '../events.ts'
import { addLatencies, countLatency, type LatencyChange } from './latency-hours.ts'
import type { RunState } from './run-state.ts'
import type { Sql } from './sql.ts'
import { addHours, countForHour, countRun, hourOf, type Buckets, type HourChange } from './usage.ts'
import { addVersionRuns, countForVersion, type VersionChange } from './version-runs.ts'

export interface Counts {
  hours: Map<string, HourChange>
  latencies: Map<string, LatencyChange>
  versions: Map<string, VersionChange>
  /** Runs as they were before. */
  runs: Map<RunState, Pick<RunState, 'agentId' | 'startedAt' | 'status'>>
}

export function noCounts(): Counts {
  return { hours: new Map(), latencies: new Map(), versions: new Map(), runs: new Map() }
}

/** Counts an event that was just stored, before it changes its run. */
export function countEvent(counts: Counts, run: RunState, event: NewEvent): void {
  const { agentId, startedAt, status } = run
  if (!counts.runs.has(run)) counts.runs.set(run, { agentId, startedAt, status })
  countForHour(counts.hours, agentId, event)
  if (event.latencyMs !== null) countLatency(counts.latencies, agentId, event, event.latencyMs)
  if (event.promptUse !== null) countForVersion(counts.versions, run.id, event, event.promptUse)
}

export function usedModels({ hours }: Counts): Set<string> {
  return new Set(Array.from(hours.values(), ({ model }) => model))
}

/** `slot`: no concurrent transaction writes rows of this number. */
export function writeCounts(
  sql: Sql,
  environmentId: string,
  { hours, latencies, versions, runs }: Counts,
  buckets: Buckets,
  slot: number,
): Promise<unknown>[] {
  for (const [run, before] of runs) {
    const isNew = before.startedAt === Infinity
    if (!isNew && run.status === before.status && hourOf(run.startedAt) === hourOf(before.startedAt)) continue
    if (!isNew) countRun(hours, before, -1)
    countRun(hours, run, 1)
  }
  const written: Promise<unknown>[] = []
  if (versions.size > 0) written.push(addVersionRuns(sql, environmentId, versions))
  if (hours.size > 0) written.push(addHours(sql, environmentId, hours, buckets, slot))
  if (latencies.size > 0) written.push(addLatencies(sql, environmentId, latencies, buckets, slot))
  return written
}
