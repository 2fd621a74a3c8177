/** Statistics of counts and means: intervals, and whether two shares differ. All intervals are 95 % intervals. */
import { number, percent } from '../engine/format.ts'

/** Quantiles of the normal distribution: two-sided for 95 %, and one-sided for 80 %. */
const [Z, Z_OF_POWER] = [1.959964, 0.841621]
/** A difference counts if chance alone would cause it with at most this probability. */
const MOST_P = 0.05
/** For more runs than this, the exact sum takes long, and the normal distribution is as good. */
const EXACT_RUNS = 20_000

/** A part of a whole, such as 4 failed runs of 30 that ended. */
export interface Share {
  part: number
  whole: number
}

/** The interval in which the true share is likely to be, from 0 to 1. Source: Wilson, JASA 22 (1927), 209. */
export function shareInterval({ part, whole }: Share): [low: number, high: number] {
  if (whole === 0) return [0, 1]
  const [share, weight] = [part / whole, Z ** 2 / whole]
  const middle = (share + weight / 2) / (1 + weight)
  const half = (Z * Math.sqrt((share * (1 - share) + weight / 4) / whole)) / (1 + weight)
  return [part === 0 ? 0 : middle - half, part === whole ? 1 : middle + half]
}

/** Number of values, their sum, and the sum of their squares. */
export type Sums = Record<'count' | 'sum' | 'squares', number>

/** Half the interval of a mean; null: there are fewer than two values. Source: Student, 1908. */
export function meanMargin(of: Sums): number | null {
  return of.count < 2 ? null : studentQuantile(of.count - 1) * Math.sqrt(meanVariance(of))
}

const meanVariance = ({ count, sum, squares }: Sums): number =>
  Math.max(0, squares - sum ** 2 / count) / (count - 1) / count

/** Whether two means differ by more than chance explains. Source: Welch, Biometrika 34 (1947), 28. */
export function areMeansDifferent(one: Sums, other: Sums): boolean {
  if (one.count < 2 || other.count < 2) return false
  const [a, b] = [meanVariance(one), meanVariance(other)]
  const distance = Math.abs(one.sum / one.count - other.sum / other.count)
  if (a + b === 0) return distance > 0
  const freedom = (a + b) ** 2 / (a ** 2 / (one.count - 1) + b ** 2 / (other.count - 1))
  return distance / Math.sqrt(a + b) > studentQuantile(Math.max(1, Math.floor(freedom)))
}

/**
 * Agreement of two authors who gave one value each, beyond chance; null if chance explains everything. `margin`: half
 * of its interval. Source: Cohen, Educational and Psychological Measurement 20 (1960), 37.
 */
export function cohenKappa(pairs: readonly (readonly [one: string, other: string])[]) {
  const [ones, others] = [0, 1].map((side) => {
    const counts = new Map<string, number>()
    for (const pair of pairs) counts.set(pair[side]!, (counts.get(pair[side]!) ?? 0) + 1)
    return counts
  }) as [Map<string, number>, Map<string, number>]
  const n = pairs.length
  const same = pairs.filter(([one, other]) => one === other).length
  let byChance = 0
  for (const [value, count] of ones) byChance += count * (others.get(value) ?? 0)
  if (n === 0 || byChance === n * n) return { same, kappa: null, margin: null }
  const [seen, chance] = [same / n, byChance / (n * n)]
  const error = Math.sqrt((seen * (1 - seen)) / n) / (1 - chance)
  return { same, kappa: (seen - chance) / (1 - chance), margin: n < 2 ? null : Z * error }
}

const FIRST_QUANTILES = [12.7062, 4.3027, 3.1824, 2.7764]

/** The 97.5 % quantile of Student's distribution. Source: Abramowitz and Stegun 26.7.5, within 0.003. */
function studentQuantile(freedom: number): number {
  const [z3, z5, z7] = [Z ** 3, Z ** 5, Z ** 7]
  const terms = [z3 + Z, 5 * z5 + 16 * z3 + 3 * Z, 3 * z7 + 19 * z5 + 17 * z3 - 15 * Z]
  const series = terms.reduce((total, term, at) => total + term / ([4, 96, 384][at]! * freedom ** (at + 1)), Z)
  return FIRST_QUANTILES[freedom - 1] ?? series
}

/**
 * The probability of shares at least as far apart if there is no difference. Source: Fisher's exact test, two-sided.
 */
export function differenceP(one: Share, other: Share): number {
  const whole = one.whole + other.whole
  const valuePart = one.part + other.part
  if (one.whole === 0 || other.whole === 0 || valuePart === 0 || valuePart === whole) return 1
  if (whole > EXACT_RUNS) return normalP(one, other)
  const logs = new Float64Array(whole + 1)
  for (let n = 2; n <= whole; n++) logs[n] = logs[n - 1]! + Math.log(n)
  const choose = (n: number, k: number) => logs[n]! - logs[k]! - logs[n - k]!
  const probability = (k: number) =>
    Math.exp(choose(one.whole, k) + choose(other.whole, valuePart - k) - choose(whole, valuePart))
  // A tolerance, because equal probabilities may differ by rounding.
  const most = probability(one.part) * (1 + 1e-7)
  let sum = 0
  for (let k = Math.max(0, valuePart - other.whole); k <= Math.min(one.whole, valuePart); k++) {
    const termOf = probability(k)
    if (termOf <= most) sum += termOf
  }
  return Math.min(1, sum)
}

function normalP(one: Share, other: Share): number {
  const pooled = (one.part + other.part) / (one.whole + other.whole)
  const error = Math.sqrt(pooled * (1 - pooled) * (1 / one.whole + 1 / other.whole))
  const distance = Math.abs(one.part / one.whole - other.part / other.whole) / error
  // Source: Abramowitz and Stegun 7.1.26, within 1.5e-7.
  const t = 1 / (1 + 0.3275911 * (distance / Math.SQRT2))
  const series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
  return series * Math.exp(-(distance ** 2) / 2)
}

/** Whether two shares differ by more than chance explains. */
export const isDifferent = (one: Share, other: Share): boolean => differenceP(one, other) <= MOST_P

/** How many each side needs to show a difference of this size in four of five cases; null if the shares are equal. */
export function neededEach(one: Share, other: Share): number | null {
  const [a, b] = [one.part / one.whole, other.part / other.whole]
  if (a === b) return null
  return Math.ceil(((Z + Z_OF_POWER) ** 2 * (a * (1 - a) + b * (1 - b))) / (a - b) ** 2)
}

/** `4 of 30 (13 %, likely 5 to 30 %)`. */
export const shareText = (share: Share, what = ''): string => {
  const [low, high] = shareInterval(share).map((edge) => Math.round(edge * 100))
  const { part, whole } = share
  return `${number(part)} of ${number(whole)}${what} (${percent(part, whole)}, likely ${low} to ${high} %)`
}

export interface Outcomes {
  completed: number
  failed: number
  cancelled: number
}

export const endedRuns = ({ completed, failed, cancelled }: Outcomes): number => completed + failed + cancelled

/** `4 of 30 ended runs (13 %, likely 5 to 30 %) failed`. */
export const failedText = (of: Outcomes): string =>
  `${shareText({ part: of.failed, whole: endedRuns(of) }, ' ended runs')} failed`

interface NamedOutcomes extends Outcomes {
  name: string
}

/** Names the one that fails more often, or reports that the numbers do not show it. Null if one has no ended run. */
export function failureComparison(one: NamedOutcomes, other: NamedOutcomes): string | null {
  const [share, otherShare] = [one, other].map((of): Share => ({ part: of.failed, whole: endedRuns(of) })) as [
    Share,
    Share,
  ]
  if (share.whole === 0 || otherShare.whole === 0) return null
  const p = differenceP(share, otherShare)
  const probability = p < 0.001 ? 'p < 0.001' : `p ≈ ${Number(p.toPrecision(p < 0.095 ? 1 : 2))}`
  const both = `${shareText(share, ' ended runs')}, and ${shareText(otherShare)} of ${other.name}`
  if (p <= MOST_P) {
    const word = share.part / share.whole > otherShare.part / otherShare.whole ? 'more' : 'less'
    return `${one.name} fails ${word} often than ${other.name}: ${both}; ${probability}.`
  }
  const needed = neededEach(share, otherShare)
  const more =
    needed === null ? '' : ` About ${number(rounded(needed))} runs of each would show a difference of this size.`
  return `No difference in failures that these numbers can show (${probability}): ${one.name} failed in ${both}.${more}`
}

/** Compares the two newest versions that have ended runs. `results`: newest first. */
export function versionComparison(results: readonly (Outcomes & { version: string })[]): string | null {
  const [newest, before] = results.filter((result) => endedRuns(result) > 0)
  if (!newest || !before) return null
  return failureComparison(
    { ...newest, name: `Version ${newest.version}` },
    { ...before, name: `version ${before.version}` },
  )
}

/** Rounds to two digits. */
const rounded = (count: number): number => Number(count.toPrecision(2))
