/** Statements use quoted camelCase aliases, so that rows have the shape of the interface. */
import { memberOf } from '../../data/exports.ts'
import type { Page } from '../../engine/page.ts'

export interface Sql {
  readonly dialect: 'sqlite' | 'postgres'
  readonly onDamage: (found: DamagedPayload | DamagedRow) => void
  all<Row>(text: string, params?: NamedParams): Promise<Row[]>
  get<Row>(text: string, params?: NamedParams): Promise<Row | null>
  /** Runs a statement without LIMIT. Reads at least one row, and at most `limit` rows and about LIMITS.listBytes. */
  page<Row extends object>(text: string, params: NamedParams, limit: number): Promise<Page<Row>>
  run(text: string, params?: NamedParams): Promise<number>
}

/** `eventId` or `seq` names the event, whichever its reader knows. */
export interface DamagedPayload {
  environmentId: string
  eventId: string | null
  seq: number | null
}

/** A damaged row of the configuration. `name` names the row, `tenantId` its owner. */
export interface DamagedRow {
  table: string
  name: string
  tenantId: string
}

export type SqlValue = string | number | Uint8Array | null

/**
 * Values of `:name`, which may occur more than once, lists for `IN (:name)`, and lists of rows for `VALUES :name`. A
 * name without a value is refused. A value whose name is not in the text is refused too, unless it is null or
 * undefined.
 */
export type NamedParams = Readonly<Record<string, SqlValue | SqlList | undefined>>
type SqlList = readonly SqlValue[] | readonly (readonly SqlValue[])[]

export interface SqlFragment {
  text: string
  params: NamedParams
}

/** A named parameter, but not a cast, `::bigint`, or JSON, `"erased":true`. */
const NAMED = /(?<![:"]):([a-z]\w*)/g

/** Cannot grow without bound: the program has a bounded number of texts. */
const known = new Map<string, { text: string; names: string[]; distinct: Set<string> }>()

export function positional(text: string, named: NamedParams): [text: string, values: readonly SqlValue[]] {
  let statement = known.get(text)
  if (statement === undefined) {
    const names = Array.from(text.matchAll(NAMED), ([, name = '']) => name)
    statement = { text: text.replaceAll(NAMED, '?'), names, distinct: new Set(names) }
    known.set(text, statement)
  }
  const { names, distinct } = statement
  const values: SqlValue[] = []
  let hasLists = false
  for (const name of names) {
    const value = Object.hasOwn(named, name) ? named[name] : undefined
    if (value === undefined) throw new Error(`The statement has no value for :${name}`)
    if (Array.isArray(value)) {
      hasLists = true
      values.push(...(value.flat() as SqlValue[]))
    } else values.push(value as SqlValue)
  }
  const keys = Object.keys(named)
  if (keys.length !== distinct.size) {
    const unused = keys.find((name) => (named[name] ?? null) !== null && !distinct.has(name))
    if (unused !== undefined) throw new Error(`The statement does not use :${unused}`)
  }
  return [hasLists ? text.replaceAll(NAMED, (_, name: string) => placesOf(named[name])) : statement.text, values]
}

function placesOf(value: unknown): string {
  if (!Array.isArray(value)) return '?'
  return value.map((one) => (Array.isArray(one) ? `(${placesOf(one)})` : '?')).join(', ')
}

export async function countOf(sql: Sql, text: string, params: NamedParams): Promise<number> {
  return (await sql.get<{ count: number }>(text, params))?.count ?? 0
}

/** Whether `inner` is in `outer`: both are SQL, never a text of a client. */
export const contains = ({ dialect }: Pick<Sql, 'dialect'>, outer: string, inner: string): string =>
  `${dialect === 'postgres' ? 'strpos' : 'instr'}(${outer}, ${inner}) > 0`

/** Both engines fold only A to Z. Pass `inner` folded by `folded`. */
export const containsFolded = (sql: Pick<Sql, 'dialect'>, outer: string, inner: string): string =>
  contains(sql, sql.dialect === 'postgres' ? `lower(${outer} COLLATE "C")` : `lower(${outer})`, inner)

export const folded = (text: string): string => text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())

/** Keeps the conditions whose values are all set, neither null nor undefined. */
export function conditionsGiven(conditions: readonly string[], params: NamedParams): string {
  const isGiven = ([, name = '']: RegExpExecArray) => (params[name] ?? null) !== null
  const givenConditions = conditions.filter((condition) => [...condition.matchAll(NAMED)].every(isGiven))
  return givenConditions.length === 0 ? 'true' : givenConditions.join(' AND ')
}

type Clause = readonly [condition: string, value?: SqlValue | readonly SqlValue[]]

/** The condition of each filter of a list, which has the filter's name as its parameter, and the parameter's value. */
export type FilterConditions<Filter> = {
  [Name in keyof Filter]-?: (
    value: NonNullable<Filter[Name]>,
    ...within: [sql: Sql, environmentId: string, filter: Filter]
  ) => Clause | Promise<Clause>
}

/** The conditions of the filters that are set, and their parameters. */
export async function filterConditions<Filter extends object>(
  conditionsOf: FilterConditions<Filter>,
  ...within: [sql: Sql, environmentId: string, filter: Filter]
) {
  const [, , filter] = within
  const conditions = []
  const params: Record<string, SqlValue | SqlList> = {}
  for (const name of Object.keys(conditionsOf) as (keyof Filter & string)[]) {
    const wanted = filter[name]
    if (wanted === undefined) continue
    const [condition, value = null] = await conditionsOf[name](wanted!, ...within)
    const isNothing = Array.isArray(value) && value.length === 0
    conditions.push(isNothing ? 'false' : condition)
    params[name] = isNothing ? null : value
  }
  return { conditions, params }
}

/** Selects columns under the names of members. `columns`: a list, or names between spaces. `prefix`: a table, such as `r.`. */
export function selectList(columns: string | readonly string[], prefix = ''): string {
  const names = typeof columns === 'string' ? columns.trim().split(/\s+/) : columns
  return names.map((column) => `${prefix}${column} AS "${memberOf(column)}"`).join(', ')
}

/** `environment_id` of an event's row, which is a number on SQLite. `of`: SQL for the environment's id. */
export const eventEnvironment = ({ dialect }: Pick<Sql, 'dialect'>, of = ':env') =>
  dialect === 'postgres' ? of : `(SELECT number FROM environment_numbers WHERE environment_id = ${of})`

/**
 * A lookup needs no transaction: it is one statement, or several that may see different states of the store. A read runs
 * on one snapshot. A write is one read-write transaction.
 */
export type ActKind = 'lookup' | 'read' | 'write'

type Run = (sql: Sql, ...args: never[]) => Promise<unknown>

export type MethodsOf<Acts> = {
  readonly [Name in keyof Acts]: Acts[Name] extends { run: (sql: Sql, ...args: infer Args) => infer Result }
    ? (...args: Args) => Result
    : never
}

const declare =
  (kind: ActKind) =>
  <Runs extends Record<string, Run>>(runs: Runs) =>
    Object.fromEntries(Object.entries(runs).map(([name, run]) => [name, { kind, run }])) as {
      readonly [Name in keyof Runs]: { readonly kind: ActKind; readonly run: Runs[Name] }
    }

/** A write to runs that the writer of events may have cached. `changedRuns` returns their ids. `args[0]` is the environment. */
export const changesRuns = <Result, Args extends unknown[]>(
  run: (sql: Sql, ...args: Args) => Promise<Result>,
  changedRuns: (result: Result, ...args: Args) => string[],
) => ({ kind: 'write' as ActKind, run, changedRuns })

export const lookup = declare('lookup')
export const read = declare('read')
export const write = declare('write')
