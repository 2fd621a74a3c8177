import { TABLES, type ExportedTable, type NamedTable, type Table, type TableName } from '../engine/tables.ts'

export type ExportedRow = Record<string, string | number | null>
/** 1: damage has changed the row, so the export has only its key. */
export const DAMAGED_ROW = 'rowDamaged'
export type ExportedKey = (string | number)[]

export interface ImportStart {
  environmentId: string
  /** SHA-256 of the first line of the export. */
  source: string
  resume: boolean
  actorId: string
  now: number
}

export interface ArrivedPage {
  /** A seq; 0: from the first event. */
  after: number
  limit: number
  pageBytes: number
}

/** `written`: rows that were missing. `index`: the place of the first row that cannot be written. */
export type RowsImported =
  | { outcome: 'imported'; written: number }
  | { outcome: 'differs' | 'foreign' | 'erased' | 'too_large'; index: number }

export interface Columns {
  columns: readonly string[]
  numbers: readonly string[]
  nullable: readonly string[]
  json: readonly string[]
}

export interface TableParts extends Columns {
  name: TableName
  of: 'environment' | 'workspace'
  key: readonly string[]
}

const wordsOf = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '')
const bare = (word: string): string => word.replace(/[#{}?]+$/, '')

export function columnsIn(text: string): Columns {
  const words = wordsOf(text)
  const named = (mark: string) => words.filter((word) => word.includes(mark)).map(bare)
  return { columns: words.map(bare), numbers: named('#'), nullable: named('?'), json: named('{}') }
}

const partsOf = ({ name, key: [tenant, ...key], exported = '' }: NamedTable): TableParts => ({
  name,
  of: tenant === 'workspace_id' ? 'workspace' : 'environment',
  key,
  ...columnsIn(exported),
})

export const EXPORTED_TABLES = Object.fromEntries(
  TABLES.flatMap((table) => (table.line === undefined ? [] : [[table.line, partsOf(table)]])),
) as Readonly<Record<ExportedTable, TableParts>>

const RUNS = TABLES.findIndex(({ name }) => name === 'runs')
const linesOf = (tables: readonly NamedTable[]) =>
  tables.flatMap(({ line }) => (line === undefined ? [] : [line as ExportedTable]))
export const EXPORTED_BEFORE_RUNS = linesOf(TABLES.slice(0, RUNS))
export const EXPORTED_AFTER_RUNS = linesOf(TABLES.slice(RUNS))

export function columnsOf({ exported = '', kept = '', computed = '' }: Table) {
  return { read: wordsOf(`${exported} ${kept}`).map(bare), computed: wordsOf(computed) }
}

export const memberOf = (column: string): string =>
  column.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** Only names are allowed, because the column goes into statements. */
export function columnOf(member: string): string {
  if (!/^\w+$/.test(member)) throw new Error('A member of a row names no column')
  return member.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
