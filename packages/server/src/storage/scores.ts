/** Judgements on runs and their steps, and what those of one name say of a run. */
import { hash } from 'node:crypto'
import type { ScoreKind } from '@tacho/contract/words.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { RowOf } from './tables.ts'

export type ScoreGroup = 'agent' | 'promptVersion'

/** `number`: of a boolean 0 or 1; null: a category. */
export interface ScoreValue {
  kind: ScoreKind
  number: number | null
  category: string | null
}

/** What a SCORE event says. */
export interface NewScore extends ScoreValue {
  name: string
  comment: string | null
  /** Empty: it names none. */
  author: string
  /** Client event id of the step; null: the run. */
  target: string | null
}

/** Null `sentAs`: an operator gave it. */
export type ScoreRow = RowOf<'scores'>

export interface RunScoreRow extends ScoreValue {
  name: string
  /** Scores of this name. Of these, `number` is the mean, and kind and category are those of the latest. */
  count: number
  scoredAt: number
}

export interface ScoreNameRow {
  name: string
  kind: ScoreKind
  scoredAt: number
}

/** Runs of one group with one name and category; their mean. */
export interface ScoreSumRow {
  key: string
  keyName: string | null
  name: string
  category: string | null
  runs: number
  /** Runs among them with numbers, and their sum. */
  numbers: number
  total: number
}

/** Whether a row replaces the stored one of the same id: the later by time, then by id of its event. */
export function isLater(one: ScoreRow, other: Pick<ScoreRow, 'scoredAt' | 'sentAs'>): boolean {
  if (one.scoredAt !== other.scoredAt) return one.scoredAt > other.scoredAt
  return (one.sentAs ?? '') > (other.sentAs ?? '')
}

/** Whether a run with so many scores of these names can keep one more. */
export function hasRoom(kept: number, names: ReadonlySet<string>, name: string): boolean {
  return kept < LIMITS.scoresOfRun && (names.has(name) || names.size < LIMITS.scoreNamesOfRun)
}

/** A score is the latest of its run, step, name and author. */
export function scoreId(of: Pick<ScoreRow, 'run' | 'eventId' | 'name' | 'authorKind' | 'authorId'>): string {
  return hash('sha256', [of.run, of.eventId ?? '', of.name, of.authorKind, of.authorId].join('\0'))
}

/** Sums of the scores of a run, by name. The same on every engine, whatever the order in which they came. */
export function runScores(scores: readonly ScoreRow[]): RunScoreRow[] {
  const byName = Map.groupBy(
    scores.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    ({ name }) => name,
  )
  return [...byName].map(([name, some]) => {
    const latest = some.reduce((last, one) => (isLater(one, last) ? one : last))
    const numbers = some.flatMap(({ number }) => number ?? [])
    const number = numbers.length === 0 ? null : numbers.reduce((sum, one) => sum + one, 0) / numbers.length
    const { kind, category, scoredAt } = latest
    return { name, kind: kind as ScoreKind, number, category, count: some.length, scoredAt }
  })
}
