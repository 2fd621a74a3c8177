/** What the new events of a transaction add to usage, latencies, tools and the results of prompt versions. */
import type { NewEvent } from '../../events.ts'
import type { Buckets } from './known-names.ts'
import { addLatencies, countLatency, isCall, type LatencyChange } from './latency-hours.ts'
import type { RunState } from '../append/run-state.ts'
import type { Sql } from '../sql.ts'
import { addUncostedHours, countUncosted, type UncostedChange } from './uncosted-hours.ts'
import { addToolHours, countTool, type ToolChange } from './tool-hours.ts'
import { addHours, countForHour, countRun, hourOf, type HourChange } from './usage.ts'
import { addVersionLatencies, countVersionLatency, type VersionLatencyChange } from './version-latencies.ts'
import { addVersionRuns, countForVersion, type VersionChange } from './version-runs.ts'

export interface Counts {
  hours: Map<string, HourChange>
  latencies: Map<string, LatencyChange>
  versions: Map<string, VersionChange>
  versionLatencies: Map<string, VersionLatencyChange>
  uncosted: Map<string, UncostedChange>
  tools: Map<string, ToolChange>
  /** Runs as they were before. */
  runs: Map<RunState, Pick<RunState, 'agentId' | 'startedAt' | 'status' | 'isNew'>>
}

export function noCounts(): Counts {
  return {
    hours: new Map(),
    latencies: new Map(),
    versions: new Map(),
    versionLatencies: new Map(),
    uncosted: new Map(),
    tools: new Map(),
    runs: new Map(),
  }
}

/** Counts an event that was just stored, before it changes its run. */
export function countEvent(counts: Counts, run: RunState, event: NewEvent): void {
  const { agentId, startedAt, status, isNew } = run
  if (!counts.runs.has(run)) counts.runs.set(run, { agentId, startedAt, status, isNew })
  countForHour(counts.hours, agentId, event)
  const callMs = isCall(event.eventType) ? event.latencyMs : null
  const tokens = event.usage?.uncosted ?? null
  if (callMs !== null && event.eventType === 'LLM_CALL') countLatency(counts.latencies, agentId, event, callMs)
  if (tokens !== null) countUncosted(counts.uncosted, agentId, event, tokens)
  if (event.toolUse !== null) countTool(counts.tools, agentId, event, event.toolUse, 1)
  if (event.promptUse === null) return
  const { versionId } = event.promptUse
  countForVersion(counts.versions, run.id, event, event.promptUse)
  if (callMs !== null) countVersionLatency(counts.versionLatencies, versionId, event, callMs)
}

export function usedNames({ hours, tools }: Pick<Counts, 'hours' | 'tools'>) {
  const models = new Set(Array.from(hours.values(), ({ model }) => model))
  return { models, tools: new Set(Array.from(tools.values(), ({ tool }) => tool)) }
}

/** `slot`: number of the rows to write. Concurrent transactions have different ones, so they never wait for each other. */
export function writeCounts(
  sql: Sql,
  environmentId: string,
  { hours, latencies, versions, versionLatencies, uncosted, tools, runs }: Counts,
  buckets: Pick<Buckets, 'models' | 'tools'>,
  slot: number,
): Promise<unknown>[] {
  for (const [run, before] of runs) {
    const { isNew } = before
    if (!isNew && run.status === before.status && hourOf(run.startedAt) === hourOf(before.startedAt)) continue
    if (!isNew) countRun(hours, before, -1)
    countRun(hours, run, 1)
  }
  const written: Promise<unknown>[] = []
  if (versions.size > 0) written.push(addVersionRuns(sql, environmentId, versions))
  if (hours.size > 0) written.push(addHours(sql, environmentId, hours, buckets, slot))
  if (latencies.size > 0) written.push(addLatencies(sql, environmentId, latencies, buckets, slot))
  if (versionLatencies.size > 0) written.push(addVersionLatencies(sql, environmentId, versionLatencies, slot))
  if (uncosted.size > 0) written.push(addUncostedHours(sql, environmentId, uncosted, buckets, slot))
  if (tools.size > 0) written.push(addToolHours(sql, environmentId, tools, buckets, slot))
  return written
}
