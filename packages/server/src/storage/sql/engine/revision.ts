import type { AuditEntry } from '../../people/operators.ts'
import { lookup, type Sql } from './sql.ts'
import { insertAudit } from '../people/audit.ts'
import { NIL_UUID } from '../../engine/uuid.ts'
import { inChunks } from './rows.ts'

export const revisionActs = lookup({ controlRevision })

async function controlRevision(sql: Sql): Promise<number> {
  const row = await sql.get<{ revision: number }>('SELECT revision FROM control WHERE id = 1')
  return row?.revision ?? 0
}

/** Call this with every change to a tenant, key or token: caches follow this revision. */
export async function growRevision(sql: Sql): Promise<void> {
  await sql.run('UPDATE control SET revision = revision + 1 WHERE id = 1')
}

export async function auditControl(sql: Sql, audit: AuditEntry[]): Promise<void> {
  await insertAudit(sql, audit)
  await growRevision(sql)
}

/** Locks control writes that must not overlap, also across processes. */
export async function lockControl(sql: Sql): Promise<void> {
  await sql.run('UPDATE control SET revision = revision WHERE id = 1')
}

/** Any number. It keeps these locks apart from those of removals (erased-keys.ts). */
const LOCK_SPACE = 7_222

/** Locks the name until the transaction ends. The embedded engine has only one writer. */
export async function holdName(sql: Sql, name: string): Promise<void> {
  if (sql.dialect === 'sqlite') return
  await sql.get(`SELECT pg_advisory_xact_lock(hashtextextended(:name, ${LOCK_SPACE})) AS held`, { name })
}

/** Locks runs in one order everywhere, and before any row. */
export async function holdFailures(sql: Sql, environmentId: string, runIds: Iterable<string>): Promise<void> {
  for (const runId of [...new Set(runIds)].toSorted()) await holdName(sql, `${environmentId} ${runId}`)
}

/**
 * PostgreSQL searches the index once for each key. For a list, it may choose an index that has the key behind other
 * columns, and so read the entries of all runs of the environment.
 */

/** A number that no run has, to fill the last chunk, as NIL_UUID does: a duplicate key would return its run twice. */
const NO_NUMBER = -1

export function runsByNumber<Row>(sql: Sql, environmentId: string, numbers: readonly number[], columns: string) {
  return rowsByKey<Row>(sql, environmentId, numbers, { table: 'runs', key: 'number', columns })
}

/** Skips runs that a client is writing to. */
export function lockRuns<Row>(sql: Sql, environmentId: string, ids: readonly string[], columns: string) {
  const order = 'id LIMIT 1 FOR UPDATE SKIP LOCKED'
  return rowsByKey<Row>(sql, environmentId, ids, { table: 'runs', key: 'id', columns, order })
}

interface ByKey {
  table: 'runs' | 'run_scores'
  key: 'number' | 'id' | 'run'
  /** Columns of the table alias `r`. */
  columns: string
  /** ORDER BY and LIMIT for the rows of one key. */
  order?: string
}

export function rowsByKey<Row>(sql: Sql, environmentId: string, keys: readonly (string | number)[], by: ByKey) {
  const { table, key, columns, order = `${key} LIMIT 1` } = by
  const [type, filler] = key === 'number' ? ['BIGINT', NO_NUMBER] : ['UUID', NIL_UUID]
  const wanted = `CAST(wanted.column1 AS ${type})`
  const text =
    sql.dialect === 'sqlite'
      ? `SELECT ${columns} FROM ${table} AS r WHERE r.environment_id = :env AND r.${key} IN (:keys)`
      : `SELECT ${columns} FROM (VALUES :keys) AS wanted CROSS JOIN LATERAL (SELECT * FROM ${table}
          WHERE environment_id = :env AND ${key} >= ${wanted} AND ${key} <= ${wanted} ORDER BY ${order}) AS r`
  const query = (chunk: (string | number)[]) =>
    sql.all<Row>(text, { env: environmentId, keys: sql.dialect === 'sqlite' ? chunk : chunk.map((one) => [one]) })
  return inChunks(keys, query, filler)
}
