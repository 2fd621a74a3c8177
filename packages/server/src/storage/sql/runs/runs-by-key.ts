/**
 * PostgreSQL searches the index once for each key: for a list it may choose an index that has the key behind other
 * columns, and read the entries of all runs of the environment.
 */
import { NIL_UUID } from '../../uuid.ts'
import { inChunks } from '../rows/chunks.ts'
import type { NamedParams, Sql } from '../sql.ts'

/** No run has it. It fills the last chunk, as NIL_UUID does: a key given twice would return its run twice. */
const NO_NUMBER = -1

export function runsByNumber<Row>(sql: Sql, environmentId: string, numbers: readonly number[], columns: string) {
  const text = textOf(sql, { key: 'number', type: 'BIGINT', columns })
  return inChunks(numbers, (chunk) => sql.all<Row>(text, paramsOf(sql, environmentId, chunk)), NO_NUMBER)
}

/** Runs that a client writes to now are left out. */
export function lockRuns<Row>(sql: Sql, environmentId: string, ids: readonly string[], columns: string) {
  const text = textOf(sql, { key: 'id', type: 'UUID', columns, lock: 'FOR UPDATE SKIP LOCKED' })
  return inChunks(ids, (chunk) => sql.all<Row>(text, paramsOf(sql, environmentId, chunk)), NIL_UUID)
}

interface Listed {
  key: 'id' | 'number'
  type: 'BIGINT' | 'UUID'
  columns: string
  lock?: string
}

function textOf({ dialect }: Sql, { key, type, columns, lock = '' }: Listed): string {
  return dialect === 'sqlite'
    ? `SELECT ${columns} FROM runs AS r WHERE environment_id = :env AND ${key} IN (:keys)`
    : `SELECT ${columns} FROM (VALUES :keys) AS wanted CROSS JOIN LATERAL
        (SELECT * FROM runs WHERE environment_id = :env AND ${key} >= CAST(wanted.column1 AS ${type})
          AND ${key} <= CAST(wanted.column1 AS ${type}) ORDER BY ${key} LIMIT 1 ${lock}) AS r`
}

function paramsOf({ dialect }: Sql, environmentId: string, keys: readonly (string | number)[]): NamedParams {
  return { env: environmentId, keys: dialect === 'sqlite' ? keys : keys.map((key) => [key]) }
}
