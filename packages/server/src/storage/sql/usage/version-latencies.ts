/** Latencies of the calls that name a prompt version, by hour. */
import type { NewEvent } from '../../events.ts'
import type { LatencyRow } from '../../usage.ts'
import { insertJsonRows, type InsertedTable } from '../rows/json-rows.ts'
import { bucketOf } from '../../latency-buckets.ts'
import { latencyRow, percentilesBy, type Call } from './latency-hours.ts'
import type { Sql } from '../sql.ts'
import { adding } from './sums.ts'
import { hourOf } from './usage.ts'

export interface VersionLatencyChange {
  hour: number
  versionId: string
  call: string
  bucket: number
  calls: number
}

export function countVersionLatency(
  latencies: Map<string, VersionLatencyChange>,
  versionId: string,
  { time, eventType }: Pick<NewEvent, 'time' | 'eventType'>,
  latencyMs: number,
  times = 1,
): void {
  const [hour, bucket] = [hourOf(time), bucketOf(latencyMs)]
  const key = `${hour} ${versionId} ${eventType} ${bucket}`
  const change = latencies.get(key)
  if (change === undefined) latencies.set(key, { hour, versionId, call: eventType, bucket, calls: times })
  else change.calls += times
}

const LATENCIES: InsertedTable = {
  name: 'version_latencies AS l',
  columns: {
    hour: 'bigint',
    prompt_version_id: 'uuid',
    call: 'text',
    bucket: 'integer',
    slot: 'integer',
    calls: 'bigint',
  },
  conflict: `ON CONFLICT (environment_id, hour, prompt_version_id, call, bucket, slot)
    DO UPDATE SET ${adding('l', ['calls'])}`,
}

/** `slot`: no concurrent transaction writes rows of this number. */
export function addVersionLatencies(
  sql: Sql,
  environmentId: string,
  latencies: ReadonlyMap<string, VersionLatencyChange>,
  slot: number,
): Promise<unknown> {
  const rows = [...latencies.values()].map(({ hour, versionId, call, bucket, calls }) => {
    return [hour, versionId, call, bucket, slot, calls]
  })
  return insertJsonRows(sql, LATENCIES, environmentId, rows)
}

const OF_VERSION = percentilesBy(
  'call',
  'SELECT call, bucket, calls FROM version_latencies WHERE environment_id = ? AND prompt_version_id = ? AND hour >= ?',
)

/** Latencies of the calls since that time. */
export async function latenciesOfVersion(
  sql: Sql,
  environmentId: string,
  versionId: string,
  since: number,
): Promise<Map<Call, LatencyRow>> {
  const rows = await sql.all<LatencyRow & { call: Call }>(OF_VERSION, [environmentId, versionId, hourOf(since)])
  return new Map(rows.map((row) => [row.call, latencyRow(row)]))
}
