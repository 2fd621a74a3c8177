import { columnOf } from '../../data/exported-tables.ts'
import type { TableName } from '../../engine/tables.ts'
import type { Sql, SqlValue } from './sql.ts'
import { isSummed, rowSum } from './row-sums.ts'

/** Rows of one statement. Few sizes mean few texts, each prepared once. */
const SIZES = [100, 10, 1]

/** All rows have the members of the first, each the name of a column. Rows of the configuration get their checksum. */
export async function insertRows(
  sql: Sql,
  table: TableName | `${TableName} AS ${string}`,
  rows: readonly object[],
  conflict = '',
): Promise<number> {
  const given = Object.keys(rows[0] ?? {})
  const members = isSummed(table) ? [...given, 'rowSum'] : given
  const text = `INSERT INTO ${table} (${members.map(columnOf).join(', ')}) VALUES :rows ${conflict}`
  const values = rows.map((row) => {
    const all = given.map((member) => stored((row as Record<string, unknown>)[member]))
    if (!isSummed(table)) return all
    return [...all, rowSum(table, Object.fromEntries(given.map((member, index) => [member, all[index]])))]
  })
  let [start, written] = [0, 0]
  for (const size of SIZES) {
    for (; rows.length - start >= size; start += size) {
      written += await sql.run(text, { rows: values.slice(start, start + size) })
    }
  }
  return written
}

/** For a row with the same key. */
export const replacing = (columns: readonly string[]): string =>
  `DO UPDATE SET ${columns.map((column) => `${column} = excluded.${column}`).join(', ')}`

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
