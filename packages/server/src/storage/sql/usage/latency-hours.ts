/**
 * Latencies of model calls by hour, agent and model, as counts in buckets. Those of tool calls are in tool-hours.ts.
 * Histograms add up, so a percentile of any time and group is read from the same rows.
 */
import { bucketOf, latencyAt } from '../../latency-buckets.ts'
import type { NewEvent } from '../../events.ts'
import type { LatencyRow } from '../../usage.ts'
import { insertJsonRows, type InsertedTable } from '../rows/json-rows.ts'
import type { Buckets } from './known-names.ts'
import type { Sql } from '../sql.ts'
import { adding } from './sums.ts'
import { hourOf } from './usage.ts'

export type Call = 'LLM_CALL' | 'TOOL_CALL'

export function isCall(eventType: string): eventType is Call {
  return eventType === 'LLM_CALL' || eventType === 'TOOL_CALL'
}

export interface LatencyChange {
  hour: number
  agentId: string
  model: string
  bucket: number
  calls: number
}

export function countLatency(
  latencies: Map<string, LatencyChange>,
  agentId: string,
  { time, usage }: Pick<NewEvent, 'time' | 'usage'>,
  latencyMs: number,
  times = 1,
): void {
  const [hour, model, bucket] = [hourOf(time), usage?.model ?? '', bucketOf(latencyMs)]
  const key = `${hour} ${agentId} ${bucket} ${model}`
  const change = latencies.get(key)
  if (change === undefined) latencies.set(key, { hour, agentId, model, bucket, calls: times })
  else change.calls += times
}

const LATENCIES: InsertedTable = {
  name: 'latency_hours AS l',
  columns: {
    hour: 'bigint',
    agent_id: 'uuid',
    model_key: 'text',
    bucket: 'integer',
    slot: 'integer',
    calls: 'bigint',
  },
  conflict: `ON CONFLICT (environment_id, hour, agent_id, model_key, bucket, slot)
    DO UPDATE SET ${adding('l', ['calls'])}`,
}

/** `slot`: no concurrent transaction writes rows of this number. */
export function addLatencies(
  sql: Sql,
  environmentId: string,
  latencies: ReadonlyMap<string, LatencyChange>,
  { models }: Pick<Buckets, 'models'>,
  slot: number,
): Promise<unknown> {
  // Models of one bucket share a row, which a statement may change only once.
  const merged = new Map<string, LatencyChange>()
  for (const change of latencies.values()) {
    const model = models.get(change.model) ?? ''
    const place = `${change.hour} ${change.agentId} ${change.bucket} ${model}`
    const same = merged.get(place)
    if (same === undefined) merged.set(place, { ...change, model })
    else same.calls += change.calls
  }
  const rows = [...merged.values()].map(({ hour, agentId, model, bucket, calls }) => {
    return [hour, agentId, model, bucket, slot, calls]
  })
  return insertJsonRows(sql, LATENCIES, environmentId, rows)
}

const upTo = (percent: number, name: string) =>
  `MIN(CASE WHEN upto * 100 >= total * ${percent} THEN bucket END) AS ${name}`

/** Percentiles for each of these columns of `buckets`, which selects them with `bucket` and `calls`. */
export function percentilesBy(columns: string, buckets: string): string {
  const counted = `SELECT ${columns}, bucket,
      SUM(calls) OVER (PARTITION BY ${columns} ORDER BY bucket) AS upto,
      SUM(calls) OVER (PARTITION BY ${columns}) AS total
    FROM (SELECT ${columns}, bucket, CAST(SUM(calls) AS BIGINT) AS calls FROM (${buckets}) named
      GROUP BY ${columns}, bucket HAVING SUM(calls) > 0) page`
  return `SELECT ${columns}, CAST(MAX(total) AS BIGINT) AS calls, ${upTo(50, 'p50')}, ${upTo(95, 'p95')}
    FROM (${counted}) page GROUP BY ${columns}`
}

/** A row of `percentilesBy` in milliseconds. */
export function latencyRow({ calls, p50, p95 }: LatencyRow): LatencyRow {
  return { calls, p50: latencyAt(p50), p95: latencyAt(p95) }
}
