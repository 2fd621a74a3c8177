/** Several measurements of the same value. */
export interface Spread {
  median: number
  min: number
  max: number
}

/** Times of many requests, in milliseconds. */
export interface Times {
  count: number
  p50: number
  p99: number
  p999: number
}

/** How often something happens per second, and how long it takes in microseconds. */
export interface Rate {
  perSecond: number
  p50Us: number
  p99Us: number
  p999Us: number
}

/** @param perSecond may come from a separate measurement, which did not read the clock each time. */
export function rateOf(milliseconds: readonly number[], perSecond: number): Rate {
  const { p50, p99, p999 } = timesOf(milliseconds)
  return { perSecond, p50Us: p50 * 1_000, p99Us: p99 * 1_000, p999Us: p999 * 1_000 }
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  return { median: middleOf(sorted), min: sorted[0] ?? Number.NaN, max: sorted.at(-1) ?? Number.NaN }
}

export function timesOf(milliseconds: readonly number[]): Times {
  const sorted = Float64Array.from(milliseconds).sort()
  const at = (share: number): number => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), p999: at(0.999) }
}

function middleOf(sorted: readonly number[]): number {
  const half = sorted.length / 2
  const [low, high] = [sorted[Math.ceil(half) - 1], sorted[Math.floor(half)]]
  return ((low ?? Number.NaN) + (high ?? Number.NaN)) / 2
}
