/**
 * The small adapter that portable SQL uses. Each engine implements it on one connection inside a transaction.
 * Statements use `?` placeholders and quoted camelCase aliases, so that rows have the shape of storage.ts.
 */
import type { Page } from '../page.ts'

export interface Sql {
  readonly dialect: 'sqlite' | 'postgres'
  all<Row>(text: string, params?: readonly SqlValue[]): Promise<Row[]>
  get<Row>(text: string, params?: readonly SqlValue[]): Promise<Row | null>
  /**
   * The first rows of a statement without LIMIT: at most `limit` rows and about LIMITS.listBytes, but at least one row.
   * Rows that do not fit on the page are not read into memory.
   */
  page<Row extends object>(text: string, params: readonly SqlValue[], limit: number): Promise<Page<Row>>
  /** The number of rows written. */
  run(text: string, params?: readonly SqlValue[]): Promise<number>
}

export type SqlValue = string | number | Uint8Array | null

/** The columns of a SELECT, from the column of each member of its rows. */
export function selectList(columns: Readonly<Record<string, string>>): string {
  return Object.entries(columns)
    .map(([name, column]) => `${column} AS "${name}"`)
    .join(', ')
}
