/** Changes add up in any order, and a negative change takes back what an earlier one added. */
import { insertJsonRows, type Columns, type InsertedTable } from '../engine/json-rows.ts'
import type { Sql } from '../engine/sql.ts'
import { adding, saturating } from './sums.ts'
import type { Kind, NameKeys } from './known-names.ts'

type Value = string | number

export interface Rollup {
  table: InsertedTable
  sums: number
  /** Place in `key` where a change has a name. Writing replaces it by the key of that name. */
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

/** In the order of the sums. Missing ones at the end are 0. */
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

// Runs for every event, several times: `join` takes twice as long.
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
  const written = [...withKeys(changes, keys)]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { key, first, sums }]) => [...key, ...(hasSlots ? [slot] : []), ...first, ...sums])
  await insertJsonRows(sql, table, environmentId, written)
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
