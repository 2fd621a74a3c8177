/** Texts for the scores, tokens and costs of runs, the same in the console, commands and messages. */
import type { ErasureKind } from '../data/erasure.ts'
import type { RunScore } from './operator-run.ts'
import type { Score, ScoreAgreement, ScoreSum } from './score.ts'

/** Unknown tokens and costs have texts of their own, because they are not zero. */
interface Used {
  usage: { cost: number; totalTokens: number }
  estimatedCost: number | null
  /** Calls whose cost is missing in the other two, at least in part. */
  unpricedCalls: number
}

const UNKNOWN = 'unknown'

/**
 * Sent and estimated costs together: `$1.20`, `≈ $1.20` if a part is estimated, `at least $1.20` if a part is missing,
 * or `unknown`.
 */
export function costWords({ usage, estimatedCost, unpricedCalls }: Used, shown: (cost: number) => string): string {
  const isNone = usage.cost === 0 && estimatedCost === null
  if (isNone && usage.totalTokens === 0) return UNKNOWN
  const whole = shown(Math.round((usage.cost + (estimatedCost ?? 0)) * 1e9) / 1e9)
  return unpricedCalls > 0 && isNone ? UNKNOWN : costMark({ estimatedCost, unpricedCalls }) + whole
}

/** Marks before a cost that is partly missing or estimated. The weaker claim comes first. */
export const COST_MARKS = ['at least ', '≈ ', ''] as const
export type CostMark = (typeof COST_MARKS)[number]

export const costMark = ({ estimatedCost, unpricedCalls }: Omit<Used, 'usage'>): CostMark =>
  unpricedCalls > 0 ? 'at least ' : estimatedCost === null ? '' : '≈ '

/** The mark of a sum: that of its least certain part. */
export const weakestMark = (marks: readonly CostMark[]): CostMark =>
  COST_MARKS.find((mark) => marks.includes(mark)) ?? ''

/** A sum of money of which only the total and the number of unpriced calls are known. */
export function spentWords(cost: number, unpricedCalls: number, shown: (cost: number) => string): string {
  return costWords({ usage: { cost, totalTokens: 1 }, estimatedCost: null, unpricedCalls }, shown)
}

/** The sent cost. Null if it is unknown: the run has none, or its whole cost is estimated. */
export const knownCost = ({ usage, estimatedCost, unpricedCalls }: Used): number | null =>
  usage.cost === 0 && (estimatedCost !== null || unpricedCalls > 0 || usage.totalTokens === 0) ? null : usage.cost

/** Total tokens, or null if no event reported any. */
export const knownTokens = ({ totalTokens }: Used['usage']): number | null => (totalTokens === 0 ? null : totalTokens)

export const tokenWords = (totalTokens: number, shown: (tokens: number) => string): string =>
  totalTokens === 0 ? UNKNOWN : shown(totalTokens)

/** Tokens in a sentence: `15 tokens`, `tokens unknown`. */
export const tokensText = (totalTokens: number, shown: (tokens: number) => string): string =>
  totalTokens === 0 ? `tokens ${UNKNOWN}` : `${shown(totalTokens)} tokens`

/** Text of a score, the same in every list and page. */

/** Rounds to at most three digits after the point. */
const short = (number: number): string => String(Math.round(number * 1_000) / 1_000)

export function scoreText(value: Score['value']): string {
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : typeof value === 'number' ? short(value) : value
}

/** The score of a run: the mean of several, or the latest category. */
export function runScoreText({
  kind,
  mean,
  category,
  count,
  hidden,
}: Pick<RunScore, 'kind' | 'mean' | 'category' | 'count' | 'hidden'>): string {
  if (hidden !== undefined) return 'hidden until you judge'
  if (kind === 'CATEGORY' || mean === null) return category ?? ''
  if (kind === 'NUMBER') return short(mean)
  return count === 1 || mean === 0 || mean === 1 ? scoreText(mean >= 0.5) : `${Math.round(mean * 100)} % yes`
}

/** `0.72 ± 0.08`: the mean of several runs, and its margin of error. */
export function meanText({ mean, meanMargin }: Pick<ScoreSum, 'mean' | 'meanMargin'>): string {
  if (mean === null) return ''
  return meanMargin === null ? short(mean) : `${short(mean)} ± ${short(meanMargin)}`
}

/** `κ 0.40 ± 0.25, n = 50: 35 equal`: how well two authors agree. */
export function kappaText({ kappa, kappaMargin, both, same }: ScoreAgreement['items'][number]): string {
  const margin = kappaMargin === null ? '' : ` ± ${kappaMargin.toFixed(2)}`
  const agreement = kappa === null ? 'κ not defined, both always said the same' : `κ ${kappa.toFixed(2)}${margin}`
  return `${agreement}, n = ${both}: ${same} equal`
}

/** Parses typed text as a number, true or false, or a category. */
export function typedScore(text: string): Score['value'] {
  const typed = text.trim()
  if (/^(yes|true|good)$/i.test(typed)) return true
  if (/^(no|false|bad)$/i.test(typed)) return false
  return /^-?[0-9]+(\.[0-9]+)?$/.test(typed) ? Number(typed) : typed
}

/**
 * Describes what an erasure does to runs that are still running, before the erasure (`isErased: false`) or after it.
 */
export function stillRunning(runs: number, kind: ErasureKind, isErased = false): string {
  const isRefused = kind === 'run' || kind === 'user'
  const [one, go, it] = runs === 1 ? ['run', 'goes', 'it records'] : ['runs', 'go', 'they record']
  const goesOn = isErased ? `${runs} of these had not ended` : `${runs} ${one} still ${go} on`
  const fate = isRefused ? 'refused' : 'stored as a new run. Stop the agent, or erase again later'
  return `${goesOn}: what ${it} ${isErased ? 'after it' : 'from now on'} is ${fate}.`
}
