/** Appends count with `times` 1; an erasure subtracts the same with a negative `times`. */
import { PROBLEM_KINDS, type ProblemKind } from '@tacho/contract/engine/words.ts'
import { bucketOf, TOKEN_PARTS, type CallTokens, type UsageSums, formerBucketOf, SKETCH } from '../../runs/usage.ts'
import type { RunStatus } from '@tacho/contract/runs/run.ts'
import type { CountedUsage } from '../../data/erasures.ts'
import type { NewEvent, PromptUse } from '../../record/events.ts'
import { hourOf } from '../../engine/times.ts'
import type { RunState } from '../record/run-state.ts'
import type { Sql } from '../engine/sql.ts'
import type { Kind, NameKeys } from './known-names.ts'
import {
  addChange,
  collectNames,
  noChanges,
  rollup,
  writeChanges,
  type Changes,
  USAGE_COLUMNS,
  USAGE_SUMS,
} from './rollup.ts'
import { allIn } from '../engine/rows.ts'

export const PART_COLUMNS = {
  input: 'input_tokens',
  cacheRead: 'cache_read_tokens',
  cacheWrite: 'cache_write_tokens',
  cacheWrite1h: 'cache_write_1h_tokens',
  output: 'output_tokens',
  reasoning: 'reasoning_tokens',
  audioInput: 'audio_input_tokens',
  cachedAudio: 'cached_audio_tokens',
  imageInput: 'image_input_tokens',
  cachedImage: 'cached_image_tokens',
  audioOutput: 'audio_output_tokens',
  imageOutput: 'image_output_tokens',
} as const

const PROBLEMS = ['errors', 'blocked', 'approvals']
const OUTCOMES = ['completed', 'failed', 'cancelled']

const HOUR = { hour: 'bigint', agent_id: 'uuid' } as const
const BUCKET = { bucket: 'integer' } as const

/** `model` is empty for events without a model, and for runs, which count in the hour in which they start. */
export const HOURS = rollup('usage_hours', { key: { ...HOUR, model_key: 'text' } }, [
  'events',
  ...USAGE_COLUMNS,
  'runs',
  ...OUTCOMES,
])
/** Histograms add up, so the same rows give any percentile. */
export const LATENCIES = rollup('latency_hours', { key: { ...HOUR, model_key: 'text', ...BUCKET } }, ['calls'])
export const TOOLS = rollup('tool_hours', { key: { ...HOUR, tool_key: 'text', ...BUCKET } }, ['calls', ...PROBLEMS])
/** Priced when they are read, so a changed price applies to all of them at once. */
export const UNCOSTED = rollup('uncosted_hours', { key: { ...HOUR, model_key: 'text', context: 'integer' } }, [
  'calls',
  ...TOKEN_PARTS.map((tokenPart) => PART_COLUMNS[tokenPart]),
])
/**
 * One row per run and version, which only the transaction that holds the run writes. The run's own row has its status, so nothing
 * is counted twice and nothing must be corrected when a run ends later.
 */
const VERSION_RUNS = rollup(
  'version_runs',
  { key: { prompt_version_id: 'uuid', run: 'uuid' }, first: { first_at: 'bigint' }, hasSlots: false },
  ['events', ...PROBLEMS, ...USAGE_COLUMNS],
)
export const VERSION_LATENCIES = rollup(
  'version_latencies',
  { key: { hour: 'bigint', prompt_version_id: 'uuid', call: 'text', ...BUCKET } },
  ['calls'],
)

/** Bucket of tool calls without a latency, and of decisions. */
const NO_LATENCY = -1

interface TakenCalls {
  of: 'latencies' | 'tools' | 'versionLatencies'
  key: readonly [hour: number, owner: string, name: string]
  latencyMs: number
  times: number
}

export type Counts = ReturnType<typeof noCounts>

export const noCounts = () => ({
  versions: noChanges(VERSION_RUNS),
  hours: noChanges(HOURS),
  latencies: noChanges(LATENCIES),
  versionLatencies: noChanges(VERSION_LATENCIES),
  uncosted: noChanges(UNCOSTED),
  tools: noChanges(TOOLS),
  /** Calls with a latency that an erasure subtracts. */
  taken: new Array<TakenCalls>(),
  /** Changed runs, as they were before the change. */
  runs: new Map<RunState, CountedRun & Pick<RunState, 'isNew'>>(),
})

function changesOf({ versions, hours, latencies, versionLatencies, uncosted, tools }: Counts): readonly Changes[] {
  return [versions, hours, latencies, versionLatencies, uncosted, tools]
}

type Counted = Omit<CountedUsage, 'times'>

/** `agentId`: the internal id. `event` stands for `times` events, with the sums of their usage. `hour` can be a part of an hour. */
export function countForAgent(
  counts: Counts,
  agentId: string,
  event: Counted,
  times: number,
  hour = hourOf(event.time),
): void {
  const { eventType, usage, latencyMs, toolUse } = event
  const model = usage?.model ?? ''
  addChange(counts.hours, [hour, agentId, model], usage === null ? [times] : [times, ...usageSums(usage, times)])
  if (eventType === 'LLM_CALL' && latencyMs !== null) {
    addCalls(counts, 'latencies', [hour, agentId, model], latencyMs, [times])
  }
  if (usage?.uncosted) {
    const { context } = usage.uncosted
    addChange(counts.uncosted, [hour, agentId, model, context], [times, ...tokenSums(usage.uncosted, times)])
  }
  if (toolUse === null) return
  const isCall = eventType === 'TOOL_CALL'
  const calls = [isCall ? times : 0, ...problemSums(toolUse.problem, times)] as const
  if (isCall && latencyMs !== null) addCalls(counts, 'tools', [hour, agentId, toolUse.tool], latencyMs, calls)
  else addChange(counts.tools, [hour, agentId, toolUse.tool, NO_LATENCY], calls)
}

export function countVersionCall(counts: Counts, event: Counted, times: number, hour = hourOf(event.time)): void {
  const { eventType, latencyMs, promptUse } = event
  if (promptUse === null || latencyMs === null || (eventType !== 'LLM_CALL' && eventType !== 'TOOL_CALL')) return
  addCalls(counts, 'versionLatencies', [hour, promptUse.versionId, eventType], latencyMs, [times])
}

type Calls = readonly [times: number, ...problems: number[]]

function addCalls(counts: Counts, of: TakenCalls['of'], key: TakenCalls['key'], latencyMs: number, calls: Calls): void {
  addChange(counts[of], [...key, bucketOf(latencyMs)], calls)
  if (calls[0] < 0) counts.taken.push({ of, key, latencyMs, times: -calls[0] })
}

/** Call this before the event changes its run. */
export function countEvent(counts: Counts, run: RunState, event: NewEvent): void {
  const { agentId, startedAt, status, isNew } = run
  if (!counts.runs.has(run)) counts.runs.set(run, { agentId, startedAt, status, isNew })
  countForAgent(counts, agentId, event, 1)
  countVersionCall(counts, event, 1)
  if (event.promptUse !== null) countVersionRun(counts, run.id, event, event.promptUse)
}

function countVersionRun(counts: Counts, runId: string, { time, usage }: NewEvent, { versionId, problem }: PromptUse) {
  const sums = [1, ...problemSums(problem, 1), ...(usage === null ? [] : usageSums(usage, 1))]
  addChange(counts.versions, [versionId, runId], sums, [time])
}

export type CountedRun = Pick<RunState, 'agentId' | 'startedAt' | 'status'>

export function countRun(counts: Counts, run: CountedRun, times: 1 | -1, hour = hourOf(run.startedAt)): void {
  const { agentId, status } = run
  const is = (outcome: RunStatus) => (status === outcome ? times : 0)
  const runs = [times, is('COMPLETED'), is('FAILED'), is('CANCELLED')]
  addChange(counts.hours, [hour, agentId, ''], [0, ...NO_USAGE, ...runs])
}

export function usedNames(counts: Counts): Record<Kind, Set<string>> {
  const names = { models: new Set<string>(), tools: new Set<string>() }
  for (const changes of changesOf(counts)) collectNames(changes, names)
  return names
}

export function writeCounts(sql: Sql, environmentId: string, counts: Counts, keys: NameKeys, slot: number) {
  // A run moves to another hour if an earlier event arrives.
  for (const [run, before] of counts.runs) {
    const { isNew } = before
    if (!isNew && run.status === before.status && hourOf(run.startedAt) === hourOf(before.startedAt)) continue
    if (!isNew) countRun(counts, before, -1)
    countRun(counts, run, 1)
  }
  return changesOf(counts).map((changes) => writeChanges(sql, environmentId, changes, keys, slot))
}

/** Appends use other slots. The embedded engine has one writer. */
export function slotOf({ dialect }: Sql, writer: 'removal' | 'stalledRule'): number {
  if (dialect === 'sqlite') return 0
  return writer === 'removal' ? -1 : -2
}

// Sums in the order of the columns of their rollup.

const NO_USAGE = USAGE_SUMS.map(() => 0)
const usageSums = (usage: UsageSums, times: number) => USAGE_SUMS.map((name) => Math.sign(times) * usage[name])
const tokenSums = (tokens: CallTokens, times: number) =>
  TOKEN_PARTS.map((tokenPart) => Math.sign(times) * tokens[tokenPart])
const problemSums = (problem: ProblemKind | null, times: number) =>
  PROBLEM_KINDS.map((kind) => (kind === problem ? times : 0))

const FORMER_TABLES = {
  latencies: { table: 'latency_hours', owner: 'agent_id', name: 'model_key' },
  tools: { table: 'tool_hours', owner: 'agent_id', name: 'tool_key' },
  versionLatencies: { table: 'version_latencies', owner: 'prompt_version_id', name: 'call' },
} as const

/**
 * Calls from before the sketch are in wider buckets, the former ones; an hour may have both kinds. An erasure takes
 * calls from the former buckets while these have any, so no bucket falls below zero. Call this before the counts are
 * written, in a transaction that holds its environment.
 */
export async function takeFormer(sql: Sql, environmentId: string, counts: Counts, keys: NameKeys): Promise<void> {
  const stored = { latencies: keys.models, tools: keys.tools, versionLatencies: null }
  for (const taken of Map.groupBy(counts.taken, ({ of, key: [, owner] }) => `${of} ${owner}`).values()) {
    const [{ of, key: first }] = taken as [TakenCalls, ...TakenCalls[]]
    const { table, owner, name } = FORMER_TABLES[of]
    const text = `SELECT hour, ${name} AS name, bucket, CAST(SUM(calls) AS BIGINT) AS calls FROM ${table}
      WHERE environment_id = :env AND ${owner} = :owner AND hour IN (:hours) AND bucket >= 0 AND bucket < ${SKETCH}
      GROUP BY hour, ${name}, bucket`
    const hours = [...new Set(taken.map(({ key: [hour] }) => hour))]
    const params = { env: environmentId, owner: first[1], hours }
    const rows = await allIn<{ hour: number; name: string; bucket: number; calls: number }>(sql, text, params)
    const left = new Map(rows.map((row) => [`${row.hour} ${row.bucket} ${row.name}`, row.calls]))
    for (const { key, latencyMs, times } of left.size === 0 ? [] : taken) {
      const [hour, , named] = key
      const bucket = formerBucketOf(latencyMs)
      const place = `${hour} ${bucket} ${stored[of]?.get(named) ?? named}`
      const calls = Math.min(times, left.get(place) ?? 0)
      if (calls <= 0) continue
      left.set(place, (left.get(place) ?? 0) - calls)
      addChange(counts[of], [...key, bucket], [-calls])
      addChange(counts[of], [...key, bucketOf(latencyMs)], [calls])
    }
  }
}
