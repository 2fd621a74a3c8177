/** The part of a run's time that its page shows. Pure. */

/** In milliseconds since 1970. */
export interface Range {
  from: number
  to: number
}

/** A shorter time shows nothing more. */
const SHORTEST_MS = 2

/** `times` as long, with the moment `at` where it was; null: the whole run. */
export function zoomed(range: Range, whole: Range, at: number, times: number): Range | null {
  const length = Math.max(SHORTEST_MS, (range.to - range.from) * times)
  const part = (at - range.from) / Math.max(1, range.to - range.from)
  return within({ from: at - part * length, to: at + (1 - part) * length }, whole)
}

/** Moved so that it does not leave the run. Null: it is all of it. */
export function within(range: Range, whole: Range): Range | null {
  const length = range.to - range.from
  if (length >= whole.to - whole.from) return null
  const from = Math.min(Math.max(range.from, whole.from), whole.to - length)
  return { from, to: from + length }
}
