import type { TableName } from '../../tables.ts'
import type { Sql, SqlValue } from '../sql.ts'

/** Rows of one statement. Few sizes mean few texts, each prepared once. */
const SIZES = [100, 10, 1]

/** The rows have the same columns. `conflict`: the clause after the values. Returns how many rows it wrote. */
export async function insertRows(
  sql: Sql,
  table: TableName | `${TableName} AS ${string}`,
  rows: readonly Record<string, SqlValue>[],
  conflict = '',
): Promise<number> {
  const columns = Object.keys(rows[0] ?? {})
  const places = `(${columns.map(() => '?').join(', ')})`
  let [start, written] = [0, 0]
  for (const size of SIZES) {
    if (rows.length - start < size) continue
    const values = Array.from({ length: size }, () => places).join(', ')
    for (; rows.length - start >= size; start += size) {
      const params = rows.slice(start, start + size).flatMap((row) => columns.map((column) => row[column] ?? null))
      written += await sql.run(`INSERT INTO ${table} (${columns.join(', ')}) VALUES ${values} ${conflict}`, params)
    }
  }
  return written
}
