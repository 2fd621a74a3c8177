import { inChunks, PLACES, ROWS } from './chunks.ts'
import type { Sql } from './sql.ts'

/** No run has this number. */
const NO_RUN = '-1'

/**
 * Columns of the runs `r` with these numbers. PostgreSQL searches the index once for each: with IN and without table
 * statistics, it would read all runs of the environment.
 */
export function runsByNumber<Row>(
  sql: Sql,
  environmentId: string,
  numbers: readonly number[],
  columns: string,
): Promise<Row[]> {
  const isEmbedded = sql.dialect === 'sqlite'
  const text = isEmbedded
    ? `SELECT ${columns} FROM runs AS r WHERE environment_id = ? AND number IN (${PLACES})`
    : `SELECT ${columns} FROM (VALUES ${ROWS.replaceAll('?', 'CAST(? AS BIGINT)')}) AS wanted CROSS JOIN LATERAL
        (SELECT * FROM runs WHERE environment_id = ? AND number >= wanted.column1 AND number <= wanted.column1
          ORDER BY number LIMIT 1) AS r`
  return inChunks(
    numbers.map(String),
    (chunk) => {
      const wanted = chunk.map(Number)
      return sql.all<Row>(text, isEmbedded ? [environmentId, ...wanted] : [...wanted, environmentId])
    },
    NO_RUN,
  )
}
