/**
 * Each engine implements this on one connection inside a transaction. Statements use quoted camelCase aliases, so that
 * rows have the shape of the interface.
 */
import type { Page } from '../page.ts'

export interface Sql {
  readonly dialect: 'sqlite' | 'postgres'
  readonly onDamage: (found: DamagedPayload) => void
  all<Row>(text: string, params?: Params): Promise<Row[]>
  get<Row>(text: string, params?: Params): Promise<Row | null>
  /**
   * For a statement without LIMIT: at most `limit` rows and about LIMITS.listBytes, but at least one row. Rows that do
   * not fit are not read into memory.
   */
  page<Row extends object>(text: string, params: Params, limit: number): Promise<Page<Row>>
  run(text: string, params?: Params): Promise<number>
}

/** `eventId` or `seq` names the event, as far as its reader knows. */
export interface DamagedPayload {
  environmentId: string
  eventId: string | null
  seq: number | null
}

export type SqlValue = string | number | Uint8Array | null

/** A list for `?`; or values by name for `:name`, which may occur more than once. */
export type Params = readonly SqlValue[] | Readonly<Record<string, SqlValue>>

/** Not of a cast: `::bigint`. */
const NAMED = /(?<!:):([a-z]\w*)/g

export function positional(text: string, params: Params): [text: string, values: readonly SqlValue[]] {
  if (Array.isArray(params)) return [text, params as readonly SqlValue[]]
  const named = params as Readonly<Record<string, SqlValue>>
  const values: SqlValue[] = []
  const numbered = text.replaceAll(NAMED, (_, name: string) => {
    const value = Object.hasOwn(named, name) ? named[name] : undefined
    if (value === undefined) throw new Error(`The statement has no value for :${name}`)
    values.push(value)
    return '?'
  })
  return [numbered, values]
}

/** `columns`: the column of each member. `prefix`: `r.` of a table r. */
export function selectList(columns: Readonly<Record<string, string>>, prefix = ''): string {
  return Object.entries(columns)
    .map(([name, column]) => `${prefix}${column} AS "${name}"`)
    .join(', ')
}
