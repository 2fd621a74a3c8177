import { DEFAULT_STALLED_RULE, type StalledRuleRow } from '../../data/stalled.ts'
import { takeSum, withSum } from '../engine/row-sums.ts'
import type { Part, Sql } from '../engine/sql.ts'

export async function readStalledRule(sql: Sql, environmentId: string): Promise<StalledRuleRow | null> {
  const text = `SELECT ${withSum('stalled_rules')} FROM stalled_rules WHERE environment_id = :env`
  const row = await sql.get<StalledRuleRow>(text, { env: environmentId })
  if (row === null) return null
  // A damaged rule closes no run.
  if (!takeSum(sql, 'stalled_rules', row, environmentId)) return { ...DEFAULT_STALLED_RULE, closeAs: null }
  return { idleMinutes: row.idleMinutes, closeAs: row.closeAs }
}

/** Running runs whose last event is before this time are stalled. */
export async function stalledBefore(sql: Sql, environmentId: string, now: number): Promise<number> {
  const { idleMinutes } = (await readStalledRule(sql, environmentId)) ?? DEFAULT_STALLED_RULE
  return now - idleMinutes * 60_000
}

export async function stalledRuns(sql: Sql, environmentId: string, now: number): Promise<Part> {
  const waiting = `SELECT run_id FROM approvals WHERE environment_id = :env AND status = 'PENDING' AND expires_at > :stalledAt
    AND run_id IS NOT NULL`
  const text = `status = 'RUNNING' AND last_event_at < :idleSince AND run_id NOT IN (${waiting})`
  return {
    text,
    params: { env: environmentId, stalledAt: now, idleSince: await stalledBefore(sql, environmentId, now) },
  }
}
