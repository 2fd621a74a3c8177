import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { RetentionSettings } from '@tacho/contract/data/retention.ts'
import type {
  CountedRows,
  CountedRuns,
  RetainedRows,
  RetainedRuns,
  RetentionPreviewRow,
  Tenant,
} from '../../data/retention.ts'
import { read, type Sql, eventEnvironment } from '../engine/sql.ts'
import { PAYLOAD_BYTES } from '../record/payloads.ts'
import { hourOf } from '../../engine/times.ts'
import { cutoffOf, expiredOf, oldestRuns, oldRows, type ExaminedRun } from './retention-removal.ts'
import { settingsOf } from './retention-settings.ts'

export const previewActs = read({ previewRetention })

/** Runs whose payloads are measured, spread over the counted runs. */
const MEASURED_RUNS = 20
const MEASURED_EVENTS = 100

async function previewRetention(
  sql: Sql,
  tenant: Tenant,
  settings: RetentionSettings,
  now: number,
): Promise<RetentionPreviewRow> {
  const rows = (what: RetainedRows) => countRows(sql, tenant, what, settings, now)
  const payloads = await countRuns(sql, tenant.environmentId, 'payloads', settings, now)
  const runs = await countRuns(sql, tenant.environmentId, 'runs', settings, now)
  return {
    runs,
    payloads,
    issues: await rows('issues'),
    approvals: await rows('approvals'),
    auditEntries: await rows('auditEntries'),
  }
}

async function countRuns(
  sql: Sql,
  environmentId: string,
  what: RetainedRuns,
  settings: RetentionSettings,
  now: number,
): Promise<CountedRuns> {
  const cutoff = cutoffOf(settings, what, now)
  if (cutoff === null) return { exact: true, runs: 0, events: 0, bytes: 0, oldest: null, newest: null }
  const limit = LIMITS.retentionCounted + 1
  const examined = await oldestRuns(sql, environmentId, { before: cutoff, after: null, limit })
  const expired = await expiredOf(sql, environmentId, examined, what, { ...settings, cutoff })
  const exact = examined.length < limit
  const oldest = expired[0]?.startedAt ?? null
  const measured = await bytesPerEvent(sql, environmentId, expired)
  if (exact) {
    const events = sum(expired.map((run) => run.eventCount - (what === 'payloads' ? run.payloadsRemoved : 0)))
    const newest = expired.at(-1)?.startedAt ?? null
    return { exact, runs: expired.length, events, bytes: Math.round(events * measured), oldest, newest }
  }
  // Assumes that the other runs contain the same share of runs that stay, such as pinned ones.
  const share = expired.length / examined.length
  const usage = await usageBetween(sql, environmentId, examined[0]?.startedAt ?? cutoff, cutoff)
  const runs = Math.max(expired.length, Math.round(usage.runs * share))
  const events = Math.max(sum(expired.map(({ eventCount }) => eventCount)), Math.round(usage.events * share))
  return { exact, runs, events, bytes: Math.round(events * measured), oldest, newest: cutoff - 1 }
}

const sum = (counts: number[]): number => counts.reduce((total, count) => total + count, 0)

/** Usage outlives runs. Usage from before the oldest run belongs to removed runs. */
async function usageBetween(sql: Sql, environmentId: string, from: number, to: number) {
  const text = `SELECT CAST(COALESCE(SUM(runs), 0) AS BIGINT) AS runs, CAST(COALESCE(SUM(events), 0) AS BIGINT) AS events
    FROM usage_hours WHERE environment_id = :env AND hour >= :from AND hour <= :to`
  const hours = { from: hourOf(from), to: hourOf(to) }
  const runCounts = await sql.get<{ runs: number; events: number }>(text, { env: environmentId, ...hours })
  return runCounts ?? { runs: 0, events: 0 }
}

async function bytesPerEvent(sql: Sql, environmentId: string, runs: readonly ExaminedRun[]): Promise<number> {
  const step = Math.max(1, Math.floor(runs.length / MEASURED_RUNS))
  const text = `SELECT COUNT(*) AS events, CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS bytes FROM (
    SELECT ${PAYLOAD_BYTES} AS bytes FROM events e WHERE environment_id = ${eventEnvironment(sql)} AND run = :run
    ORDER BY time, seq LIMIT :limit) AS page`
  let [events, bytes] = [0, 0]
  for (let at = 0; at < runs.length; at += step) {
    const params = { env: environmentId, run: runs[at]?.number ?? 0, limit: MEASURED_EVENTS }
    const measured = await sql.get<{ events: number; bytes: number }>(text, params)
    events += measured?.events ?? 0
    bytes += measured?.bytes ?? 0
  }
  return events === 0 ? 0 : bytes / events
}

async function countRows(
  sql: Sql,
  tenant: Tenant,
  what: RetainedRows,
  settings: RetentionSettings,
  now: number,
): Promise<CountedRows> {
  const { workspace } = await settingsOf(sql, tenant)
  const counted: CountedRows = { exact: true, count: 0, oldest: null }
  for (const { table, where, params, time } of oldRows(what, tenant, settings, workspace?.settings ?? null, now)) {
    const at = table === 'audit_log' ? 'at' : time
    const text = `SELECT COUNT(*) AS count, MIN(at) AS oldest FROM (
      SELECT ${at} AS at FROM ${table} WHERE ${where} ORDER BY ${time}, id LIMIT :limit) AS page`
    const limited = { ...params, limit: LIMITS.retentionCounted + 1 }
    const rowCounts = await sql.get<{ count: number; oldest: number | null }>(text, limited)
    const { count = 0, oldest = null } = rowCounts ?? {}
    if (count > LIMITS.retentionCounted) counted.exact = false
    counted.count += Math.min(count, LIMITS.retentionCounted)
    if (oldest !== null && (counted.oldest === null || oldest < counted.oldest)) counted.oldest = oldest
  }
  return counted
}
