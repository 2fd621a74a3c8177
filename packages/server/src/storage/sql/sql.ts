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

/**
 * A list for `?`; or values by name for `:name`, which may occur more than once, and lists for `IN (:name)`. A name
 * without a value is refused, and a value without its name in the text, unless it is undefined.
 */
export type Params = readonly SqlValue[] | Readonly<Record<string, SqlValue | readonly SqlValue[] | undefined>>

/** Not of a cast: `::bigint`. */
const NAMED = /(?<!:):([a-z]\w*)/g

interface Named {
  text: string
  names: readonly string[]
  distinct: ReadonlySet<string>
}

/** The program has a bounded number of texts. */
const known = new Map<string, Named>()

export function positional(text: string, params: Params): [text: string, values: readonly SqlValue[]] {
  if (Array.isArray(params)) return [text, params as readonly SqlValue[]]
  const given = params as Exclude<Params, readonly SqlValue[]>
  const statement = known.get(text) ?? parse(text)
  const values: SqlValue[] = []
  let hasLists = false
  for (const name of statement.names) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined
    if (value === undefined) throw new Error(`The statement has no value for :${name}`)
    if (Array.isArray(value)) {
      hasLists = true
      values.push(...value)
    } else values.push(value as SqlValue)
  }
  const keys = Object.keys(given)
  if (keys.length !== statement.distinct.size) {
    const unused = keys.find((name) => given[name] !== undefined && !statement.distinct.has(name))
    if (unused !== undefined) throw new Error(`The statement does not use :${unused}`)
  }
  return [hasLists ? withLists(text, given) : statement.text, values]
}

function parse(text: string): Named {
  const names = Array.from(text.matchAll(NAMED), ([, name = '']) => name)
  const statement = { text: text.replaceAll(NAMED, '?'), names, distinct: new Set(names) }
  known.set(text, statement)
  return statement
}

function withLists(text: string, given: Exclude<Params, readonly SqlValue[]>): string {
  return text.replaceAll(NAMED, (_, name: string) => {
    const value = given[name]
    return Array.isArray(value) ? value.map(() => '?').join(', ') : '?'
  })
}

/** `columns`: the column of each member. `prefix`: `r.` of a table r. */
export function selectList(columns: Readonly<Record<string, string>>, prefix = ''): string {
  return Object.entries(columns)
    .map(([name, column]) => `${prefix}${column} AS "${name}"`)
    .join(', ')
}
