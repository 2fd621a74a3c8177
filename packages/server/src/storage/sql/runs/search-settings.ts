/**
 *   (no row) --switched on--> ON --switched off--> REMOVING --index deleted--> (no row)
 */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { AuditEntry } from '../../people/audit.ts'
import type { SearchSettingsRow } from '../../runs/search.ts'
import { look, write } from '../engine/act.ts'
import { insertAudit } from '../people/audit.ts'
import { lockEnvironment } from '../tenants/environments.ts'
import { insertRows } from '../engine/insert-rows.ts'
import { selectList, type Sql } from '../engine/sql.ts'
import { enqueueWork, removeWork } from '../engine/work.ts'

export const searchSettingsActs = {
  ...look({ readSearchSettings }),
  ...write({ switchSearch, failIndexing }),
}

/**
 * On PostgreSQL, older runs are marked only after this time. A transaction that began before the switch does not mark
 * its runs, and has ended by then.
 */
const SETTLE_MS = { sqlite: 0, postgres: 10_000 }

export const SEARCHED = "SELECT 1 AS found FROM search_settings WHERE environment_id = :env AND state = 'ON'"

/** Longer than clocks of clients may be ahead. */
const AHEAD_MS = 3_600_000
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

const COLUMNS = selectList('state changed_at older_before older_id indexed_events error')

export async function readSearchSettings(sql: Sql, environmentId: string): Promise<SearchSettingsRow | null> {
  const row = await sql.get<Omit<SearchSettingsRow, 'waitingRuns' | 'waitingSince'>>(
    `SELECT ${COLUMNS} FROM search_settings WHERE environment_id = :env`,
    { env: environmentId },
  )
  if (row === null) return null
  const waiting = await sql.get<{ runs: number; since: number | null }>(
    `SELECT COUNT(*) AS runs, MIN(marked_at) AS since FROM (SELECT marked_at FROM search_runs
      WHERE environment_id = :env AND marked_at IS NOT NULL ORDER BY marked_at LIMIT :limit) AS marked`,
    { env: environmentId, limit: LIMITS.searchRunsCounted },
  )
  return { ...row, waitingRuns: waiting?.runs ?? 0, waitingSince: waiting?.since ?? null }
}

/** `removing`: its old index is not deleted yet. */
async function switchSearch(
  sql: Sql,
  environmentId: string,
  enabled: boolean,
  now: number,
  audit: AuditEntry[],
): Promise<'switched' | 'unchanged' | 'removing'> {
  await lockEnvironment(sql, environmentId)
  const row = await readSearchSettings(sql, environmentId)
  const isOn = row?.state === 'ON'
  if (isOn === enabled) return 'unchanged'
  if (enabled && row !== null) return 'removing'
  if (enabled) {
    const older = { olderBefore: now + AHEAD_MS, olderId: LAST_ID }
    await insertRows(sql, 'search_settings', [
      { environmentId, state: 'ON', changedAt: now, ...older, indexedEvents: 0 },
    ])
  } else {
    const text = `UPDATE search_settings SET state = 'REMOVING', changed_at = :now, error = NULL
      WHERE environment_id = :env`
    await sql.run(text, { now, env: environmentId })
  }
  await insertAudit(sql, audit)
  const dueAt = enabled ? now + SETTLE_MS[sql.dialect] : now
  await enqueueWork(sql, [{ kind: 'index_search', environmentId, subjectId: environmentId, dueAt }])
  return 'switched'
}

async function failIndexing(sql: Sql, environmentId: string, error: string): Promise<void> {
  await sql.run('UPDATE search_settings SET error = :error WHERE environment_id = :env', { error, env: environmentId })
  await endWork(sql, environmentId)
}

export function endWork(sql: Sql, environmentId: string): Promise<void> {
  return removeWork(sql, { kind: 'index_search', environmentId, subjectId: environmentId })
}
