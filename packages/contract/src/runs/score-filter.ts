/**
 * The filter of runs by a score: `helpful`, `helpful=true`, `accuracy<0.5`, `tone=rude`. It has no schema library,
 * because commands load it.
 */
import { LIMITS } from '../engine/limits.ts'

export const SCORE_COMPARISONS = ['<=', '>=', '<', '>', '='] as const
export type ScoreComparison = (typeof SCORE_COMPARISONS)[number]

/** `compare` null: any value. Texts, true and false are compared only with `=`. */
export interface ScoreFilter {
  name: string
  compare: ScoreComparison | null
  value: number | boolean | string | null
}

const FORM = new RegExp(`^([^<>=]{1,${LIMITS.scoreNameChars}})(?:(<=|>=|<|>|=)(.+))?$`, 'su')
const NUMBER = /^-?[0-9]+(\.[0-9]+)?$/

/** Null: the text is not a valid filter. */
export function readScoreFilter(text: string): ScoreFilter | null {
  const formMatch = FORM.exec(text)
  const name = formMatch?.[1]?.trim() ?? ''
  if (formMatch === null || name === '') return null
  const compare = (formMatch[2] ?? null) as ScoreComparison | null
  const soughtValue = formMatch[3]?.trim()
  if (compare === null) return { name, compare, value: null }
  if (soughtValue === undefined || soughtValue === '') return null
  if (NUMBER.test(soughtValue)) return { name, compare, value: Number(soughtValue) }
  if (compare !== '=') return null
  return { name, compare, value: soughtValue === 'true' ? true : soughtValue === 'false' ? false : soughtValue }
}
