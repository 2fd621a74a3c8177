import { columnOf } from '../../exported-tables.ts'
import type { TableName } from '../../tables.ts'
import type { Sql, SqlValue } from '../sql.ts'

/** Rows of one statement. Few sizes mean few texts, each prepared once. */
const SIZES = [100, 10, 1]

/** All rows have the members of the first, each the name of a column. */
export async function insertRows(
  sql: Sql,
  table: TableName | `${TableName} AS ${string}`,
  rows: readonly object[],
  conflict = '',
): Promise<number> {
  const members = Object.keys(rows[0] ?? {})
  const columns = members.map(columnOf).join(', ')
  const places = `(${members.map(() => '?').join(', ')})`
  let [start, written] = [0, 0]
  for (const size of SIZES) {
    if (rows.length - start < size) continue
    const values = Array.from({ length: size }, () => places).join(', ')
    for (; rows.length - start >= size; start += size) {
      const params = rows.slice(start, start + size).flatMap((row) => members.map((member) => valueIn(row, member)))
      written += await sql.run(`INSERT INTO ${table} (${columns}) VALUES ${values} ${conflict}`, params)
    }
  }
  return written
}

const valueIn = (row: object, member: string) => stored((row as Record<string, unknown>)[member])

export function stored(value: unknown): SqlValue {
  if (typeof value === 'boolean') return value ? 1 : 0
  const isPlain = typeof value !== 'object' || value === null || value instanceof Uint8Array
  return isPlain ? ((value ?? null) as SqlValue) : JSON.stringify(value)
}

/** Null stays null. */
export function withJson<Row extends object>(...members: (keyof Row)[]) {
  return (row: object): Row => {
    const texts = row as Record<keyof Row, string>
    const parsed = members.map((member) => [member, JSON.parse(texts[member]) as unknown])
    return { ...row, ...Object.fromEntries(parsed) } as Row
  }
}
