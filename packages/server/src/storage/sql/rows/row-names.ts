import { columnsOf, memberOf } from '../../exported-tables.ts'
import { TABLES, type RowOf, type TableName } from '../../tables.ts'
import type { SqlValue } from '../sql.ts'

/** Column of each member, without the tenant's columns. */
export function namesOfRow<Name extends TableName>(name: Name): Record<keyof RowOf<Name>, string> {
  const columns = TABLES.filter((table) => table.name === name).flatMap((table) => columnsOf(table).read)
  return Object.fromEntries(columns.map((column) => [memberOf(column), column])) as Record<keyof RowOf<Name>, string>
}

export function columnsOfRow<Name extends TableName>(name: Name, row: RowOf<Name>): Record<string, SqlValue> {
  const names = Object.entries<string>(namesOfRow(name))
  return Object.fromEntries(names.map(([member, column]) => [column, row[member as keyof RowOf<Name>] as SqlValue]))
}
