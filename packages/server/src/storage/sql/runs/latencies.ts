import { latencyAt } from '../../runs/latency-buckets.ts'
import type { LatencyRow } from '../../runs/usage.ts'
import type { Sql } from '../engine/sql.ts'
import { hourOf } from '../../engine/hours.ts'

export type Call = 'LLM_CALL' | 'TOOL_CALL'

const upTo = (percent: number, name: string) =>
  `MIN(CASE WHEN upto * 100 >= total * ${percent} THEN bucket END) AS ${name}`

export function percentilesBy(columns: string, buckets: string): string {
  const counted = `SELECT ${columns}, bucket,
      SUM(calls) OVER (PARTITION BY ${columns} ORDER BY bucket) AS upto,
      SUM(calls) OVER (PARTITION BY ${columns}) AS total
    FROM (SELECT ${columns}, bucket, CAST(SUM(calls) AS BIGINT) AS calls FROM (${buckets}) named
      GROUP BY ${columns}, bucket HAVING SUM(calls) > 0) page`
  return `SELECT ${columns}, CAST(MAX(total) AS BIGINT) AS calls, ${upTo(50, 'p50')}, ${upTo(95, 'p95')}
    FROM (${counted}) page GROUP BY ${columns}`
}

/** From buckets to milliseconds. */
export function latencyRow({ calls, p50, p95 }: LatencyRow): LatencyRow {
  return { calls, p50: latencyAt(p50), p95: latencyAt(p95) }
}

const OF_VERSION = percentilesBy(
  'call',
  `SELECT call, bucket, calls FROM version_latencies
    WHERE environment_id = :env AND prompt_version_id = :versionId AND hour >= :from`,
)

export async function latenciesOfVersion(sql: Sql, environmentId: string, versionId: string, since: number) {
  const params = { env: environmentId, versionId, from: hourOf(since) }
  const rows = await sql.all<LatencyRow & { call: Call }>(OF_VERSION, params)
  return new Map(rows.map((row) => [row.call, latencyRow(row)]))
}
