/**
 * Calls that were counted before the sketch are in wider buckets, beside those of the sketch if their hour has both. An erasure takes
 * calls from the former buckets as long as these have some, so no sum of a bucket is ever below zero.
 */
import { bucketOf, formerBucketOf, SKETCH } from '../../runs/usage.ts'
import { allIn } from '../engine/rows.ts'
import type { Sql } from '../engine/sql.ts'
import type { NameKeys } from './known-names.ts'
import { addChange } from './rollup.ts'
import type { Counts, TakenCalls } from './usage-counts.ts'

const TABLES = {
  latencies: { table: 'latency_hours', owner: 'agent_id', name: 'model_key' },
  tools: { table: 'tool_hours', owner: 'agent_id', name: 'tool_key' },
  versionLatencies: { table: 'version_latencies', owner: 'prompt_version_id', name: 'call' },
} as const

/** Call this before the counts are written, in a transaction that holds its environment. */
export async function takeFormer(sql: Sql, environmentId: string, counts: Counts, keys: NameKeys): Promise<void> {
  const stored = { latencies: keys.models, tools: keys.tools, versionLatencies: null }
  for (const taken of Map.groupBy(counts.taken, ({ of, key: [, owner] }) => `${of} ${owner}`).values()) {
    const [{ of, key: first }] = taken as [TakenCalls, ...TakenCalls[]]
    const { table, owner, name } = TABLES[of]
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
