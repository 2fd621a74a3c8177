import { SINCE, type RunsSearch } from './search.ts'

const HOUR_MS = 3_600_000

/** The start of the period: an exact time, or a duration before now. */
export function startOf({ since, from }: Pick<RunsSearch, 'since' | 'from'>): { from?: string } {
  if (from !== undefined) return { from }
  return since === undefined ? {} : { from: new Date(Date.now() - SINCE[since] * HOUR_MS).toISOString() }
}
