/** What people read for a score, as every list and page says it. */
import type { RunScore } from './operator-run.ts'
import type { Score, ScoreSum } from './score.ts'

/** At most three digits after the point. */
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
}: Pick<RunScore, 'kind' | 'mean' | 'category' | 'count'>): string {
  if (kind === 'CATEGORY' || mean === null) return category ?? ''
  if (kind === 'NUMBER') return short(mean)
  return count === 1 || mean === 0 || mean === 1 ? scoreText(mean >= 0.5) : `${Math.round(mean * 100)} % yes`
}

/** `0.72 ± 0.08`: a mean of several runs, and how far the true one is likely to be from it. */
export function meanText({ mean, meanMargin }: Pick<ScoreSum, 'mean' | 'meanMargin'>): string {
  if (mean === null) return ''
  return meanMargin === null ? short(mean) : `${short(mean)} ± ${short(meanMargin)}`
}

/** Parses typed text as a number, yes or no, or a category. */
export function typedScore(text: string): Score['value'] {
  const typed = text.trim()
  if (/^(yes|true|good)$/i.test(typed)) return true
  if (/^(no|false|bad)$/i.test(typed)) return false
  return /^-?[0-9]+(\.[0-9]+)?$/.test(typed) ? Number(typed) : typed
}
