/** The result of a benchmark. */
import type { Machine } from './machine.ts'
import { spreadOf, type Spread } from './stats.ts'

export interface Row {
  what: string
  unit: string
  ours: Spread
  /** The same figure for the driver or the framework alone. */
  bare: Spread | null
  /** Our figure divided by the bare one, per round: 1 is as good as the bare limit, 0.5 half as good. */
  ratio: Spread | null
  budgets: Budget[]
}

export interface Budget {
  of: 'ours' | 'ratio'
  is: 'at least' | 'below'
  limit: number
}

export interface Result {
  rows: Row[]
  /** Sentences for the page. */
  notes: string[]
  /** Lines of a Markdown table for the page. */
  table?: string[]
}

/** Makes a row from one figure for each round. More is better for a rate (`/s`), less for everything else. */
export function row(
  what: string,
  unit: string,
  ours: readonly number[],
  bare?: readonly number[] | null,
  ...budgets: Budget[]
): Row {
  const ratios = bare?.map((limit, round) => {
    const figure = ours[round] ?? Number.NaN
    return unit === '/s' ? figure / limit : limit / figure
  })
  return {
    what,
    unit,
    ours: spreadOf(ours),
    bare: bare ? spreadOf(bare) : null,
    ratio: ratios ? spreadOf(ratios) : null,
    budgets,
  }
}

export const below = (limit: number): Budget => ({ of: 'ours', is: 'below', limit })
export const atLeast = (limit: number): Budget => ({ of: 'ours', is: 'at least', limit })
export const ratioAtLeast = (limit: number): Budget => ({ of: 'ratio', is: 'at least', limit })

export function isMet({ ours, ratio }: Row, { of, is, limit }: Budget): boolean {
  const { median } = (of === 'ours' ? ours : ratio) ?? { median: Number.NaN }
  return is === 'at least' ? median >= limit : median < limit
}

/** A result with its circumstances. */
export interface Measured extends Result {
  name: string
  machine: Machine
  rounds: number
  seconds: number
}
