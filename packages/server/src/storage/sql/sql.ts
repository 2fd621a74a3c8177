/**
 * The small adapter that portable SQL uses. Each engine implements it on one connection inside a transaction.
 * Statements use `?` placeholders and quoted camelCase aliases, so that rows have the shape of storage.ts.
 */
import type { Page } from '../page.ts'

export interface Sql {
  readonly dialect: 'sqlite' | 'postgres'
  /** Called for each damaged payload that is read. */
  readonly onDamage: (found: DamagedPayload) => void
  all<Row>(text: string, params?: readonly SqlValue[]): Promise<Row[]>
  get<Row>(text: string, params?: readonly SqlValue[]): Promise<Row | null>
  /**
   * The first rows of a statement without LIMIT: at most `limit` rows and about LIMITS.listBytes, but at least one row.
   * Rows that do not fit on the page are not read into memory.
   */
  page<Row extends object>(text: string, params: readonly SqlValue[], limit: number): Promise<Page<Row>>
  run(text: string, params?: readonly SqlValue[]): Promise<number>
}

/** An event whose payload is not the one that was stored. `eventId` or `seq` names it, as far as its reader knows. */
export interface DamagedPayload {
  environmentId: string
  eventId: string | null
  seq: number | null
}

export type SqlValue = string | number | Uint8Array | null

/** The columns of a SELECT, from the column of each member of its rows. `prefix`: `r.` of a table r. */
export function selectList(columns: Readonly<Record<string, string>>, prefix = ''): string {
  return Object.entries(columns)
    .map(([name, column]) => `${prefix}${column} AS "${name}"`)
    .join(', ')
}
