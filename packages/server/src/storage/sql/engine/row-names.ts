import { columnsOf, memberOf } from '../../data/exported-tables.ts'
import { TABLES, type RowOf, type TableName } from '../../engine/tables.ts'

/** Without the tenant's columns. */
export function columnsOfRow(name: TableName): string[] {
  return TABLES.filter((table) => table.name === name).flatMap((table) => columnsOf(table).read)
}

export function rowFor<Name extends TableName>(name: Name, row: RowOf<Name>): object {
  const members = columnsOfRow(name).map(memberOf) as (keyof RowOf<Name>)[]
  return Object.fromEntries(members.map((member) => [member, row[member]]))
}
