/** Changes add up in any order, and a negative change takes back what an earlier one added. */
import { insertJsonRows, type Columns, type InsertedTable } from '../engine/rows.ts'
import type { Sql } from '../engine/sql.ts'
import type { Kind, NameKeys } from './known-names.ts'
import { IN_SKETCH, latencyAt, SKETCH, type LatencyRow, type UsageSums } from '../../runs/usage.ts'
import { hourOf } from '../../engine/times.ts'
import { columnOf, memberOf } from '../../data/exports.ts'

type Value = string | number

interface Rollup {
  table: InsertedTable
  sums: number
  /** Place of a name in `key`. Writing a change replaces the name by its key. */
  named: { place: number; kind: Kind } | null
  hasSlots: boolean
}

const NAMED: ReadonlyMap<string, Kind> = new Map([
  ['model_key', 'models'],
  ['tool_key', 'tools'],
])

/**
 * `key`: columns that a change names, in this order. `first`: columns that keep the value of the first change.
 * Concurrent transactions write rows of different slots, so they never wait for each other; readers add up all slots.
 */
export function rollup(
  name: string,
  { key, first = {}, hasSlots = true }: { key: Columns; first?: Columns; hasSlots?: boolean },
  sums: readonly string[],
): Rollup {
  const slot: Columns = hasSlots ? { slot: 'integer' } : {}
  const columns = { ...key, ...slot, ...first, ...Object.fromEntries(sums.map((sum) => [sum, 'bigint'] as const)) }
  const unique = Object.keys({ ...key, ...slot }).join(', ')
  const conflict = `ON CONFLICT (environment_id, ${unique}) DO UPDATE SET ${adding('stored', sums)}`
  const place = Object.keys(key).findIndex((column) => NAMED.has(column))
  const kind = NAMED.get(Object.keys(key)[place] ?? '')
  return {
    table: { name: `${name} AS stored`, columns, conflict },
    sums: sums.length,
    named: kind === undefined ? null : { place, kind },
    hasSlots,
  }
}

interface Change {
  key: readonly Value[]
  first: readonly Value[]
  sums: number[]
}

export interface Changes {
  rollup: Rollup
  rows: Map<string, Change>
}

export const noChanges = (of: Rollup): Changes => ({ rollup: of, rows: new Map() })

/** `amounts` has the order of the sums; missing ones at the end are 0. */
export function addChange(
  { rollup: { sums }, rows }: Changes,
  key: readonly Value[],
  amounts: readonly number[],
  first: readonly Value[] = [],
): void {
  const place = placeOf(key)
  const row = rows.get(place)
  if (row === undefined) rows.set(place, { key, first, sums: [...amounts, ...zeros(sums - amounts.length)] })
  else addAmounts(row, amounts)
}

// Called several times per event, and `join` takes twice as long.
function placeOf(key: readonly Value[]): string {
  let place = ''
  for (const value of key) place += `${value} `
  return place
}

const zeros = (count: number): number[] => Array<number>(count).fill(0)

function addAmounts({ sums }: Change, amounts: readonly number[]): void {
  for (let index = 0; index < amounts.length; index++) {
    sums[index] = saturating(sums[index] ?? 0, amounts[index] ?? 0)
  }
}

export function collectNames({ rollup: { named }, rows }: Changes, names: Record<Kind, Set<string>>): void {
  if (named === null) return
  for (const { key } of rows.values()) names[named.kind].add(String(key[named.place]))
}

export async function writeChanges(sql: Sql, environmentId: string, changes: Changes, keys: NameKeys, slot: number) {
  if (changes.rows.size === 0) return
  const { table, hasSlots } = changes.rollup
  await insertJsonRows(sql, table, environmentId, changedRows(changes, keys, hasSlots ? [slot] : []))
}

export function changedRows(changes: Changes, keys: NameKeys, slot: readonly number[] = []): Value[][] {
  return [...withKeys(changes, keys)]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { key, first, sums }]) => [...key, ...slot, ...first, ...sums])
}

/** Names that share a key share a row, which a statement may change only once. */
function withKeys({ rollup: { named }, rows }: Changes, keys: NameKeys): Changes['rows'] {
  if (named === null) return rows
  const merged: Changes['rows'] = new Map()
  for (const { key, first, sums } of rows.values()) {
    const stored = key.with(named.place, keys[named.kind].get(String(key[named.place])) ?? '')
    const place = placeOf(stored)
    const row = merged.get(place)
    if (row === undefined) merged.set(place, { key: stored, first, sums: [...sums] })
    else addAmounts(row, sums)
  }
  return merged
}

export type Call = 'LLM_CALL' | 'TOOL_CALL'

const upTo = (percent: number, name: string) =>
  `MIN(CASE WHEN upto * 100 >= total * ${percent} THEN bucket END) AS ${name}`

export function percentilesBy(columns: string, buckets: string): string {
  const sketched = `SELECT ${columns}, calls, ${IN_SKETCH} AS bucket, CASE WHEN bucket < ${SKETCH} THEN calls ELSE 0 END AS former
    FROM (${buckets}) named`
  const counted = `SELECT ${columns}, bucket, former,
      SUM(calls) OVER (PARTITION BY ${columns} ORDER BY bucket) AS upto,
      SUM(calls) OVER (PARTITION BY ${columns}) AS total
    FROM (SELECT ${columns}, bucket, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(former) AS BIGINT) AS former
      FROM (${sketched}) sketched GROUP BY ${columns}, bucket HAVING SUM(calls) > 0) page`
  return `SELECT ${columns}, CAST(MAX(total) AS BIGINT) AS calls, ${upTo(50, 'p50')}, ${upTo(95, 'p95')},
      CAST(SUM(former) AS BIGINT) AS former
    FROM (${counted}) page GROUP BY ${columns}`
}

/** Converts buckets to milliseconds. */
export function latencyRow({ calls, p50, p95, former }: LatencyRow): LatencyRow {
  return { calls, p50: latencyAt(p50), p95: latencyAt(p95), former }
}

const OF_VERSION = percentilesBy(
  'call',
  `SELECT call, bucket, calls FROM version_latencies
    WHERE environment_id = :env AND prompt_version_id = :versionId AND hour >= :from`,
)

export async function latenciesOfVersion(sql: Sql, environmentId: string, versionId: string, since: number) {
  const params = { env: environmentId, versionId, from: hourOf(since) }
  const rows = await sql.all<LatencyRow & { call: Call }>(OF_VERSION, params)
  return new Map(rows.map((row) => [row.call, latencyRow(row)]))
}

/** Sums saturate at the largest exact integer, so that any order and engine gives the same result. */
export const MAX_SUM = Number.MAX_SAFE_INTEGER

export const USAGE_SUMS = ['promptTokens', 'completionTokens', 'totalTokens', 'costNanos'] as const
export const USAGE_COLUMNS = USAGE_SUMS.map(columnOf)

export function noUsage(): UsageSums {
  return { promptTokens: 0, completionTokens: 0, totalTokens: 0, costNanos: 0 }
}

export function addUsage(sums: UsageSums, usage: UsageSums): void {
  for (const name of USAGE_SUMS) sums[name] = saturating(sums[name], usage[name])
}

export function saturating(a: number, b: number): number {
  return Math.max(-MAX_SUM, Math.min(a + b, MAX_SUM))
}

function adding(alias: string, columns: readonly string[]): string {
  const added = (column: string) => `${alias}.${column} + excluded.${column}`
  const isOver = (column: string) => `${alias}.${column} > ${MAX_SUM} - excluded.${column}`
  return columns
    .map((column) => `${column} = CASE WHEN ${isOver(column)} THEN ${MAX_SUM} ELSE ${added(column)} END`)
    .join(', ')
}

export const sum = (column: string, name: string): string => `CASE WHEN SUM(${column}) > ${MAX_SUM} THEN ${MAX_SUM}
    ELSE CAST(SUM(${column}) AS BIGINT) END AS "${name}"`

export const sumsOf = (columns: readonly string[]): string =>
  columns.map((column) => sum(column, memberOf(column))).join(', ')
