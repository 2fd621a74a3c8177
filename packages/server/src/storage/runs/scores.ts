import { hash } from 'node:crypto'
import type { ScoreKind } from '@tacho/contract/engine/words.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { RowOf } from '../engine/tables.ts'

export type ScoreGroup = 'agent' | 'promptVersion' | 'author'

/** An operator or a token, as the author of scores. */
export interface Judge {
  kind: string
  id: string
}

/** `number`: 0 or 1 for a boolean; null for a category. */
export interface ScoreValue {
  kind: ScoreKind
  number: number | null
  category: string | null
}

export interface NewScore extends ScoreValue {
  name: string
  comment: string | null
  /** Empty: no author is named. */
  author: string
  /** Client event id of the step; null: the run. */
  target: string | null
}

/** `sentAs` null: an operator gave the score. */
export type ScoreRow = RowOf<'scores'>

type SentScore = Pick<ScoreRow, 'scoredAt' | 'sentAs'>

export type SummedScore = SentScore & Pick<ScoreRow, 'id' | 'name' | 'kind' | 'number' | 'category'>

export interface RunScoreRow extends ScoreValue {
  name: string
  /** Scores of this name. `number` is their mean; kind and category are those of the latest. */
  count: number
  scoredAt: number
}

/**
 * The sums of a run and name that a new score changes. `numbers`: how many scores are not categories. `sum`: the sum of
 * those.
 */
export interface RunScoreSums extends RunScoreRow {
  sentAs: string | null
  numbers: number
  sum: ExactSum
}

export interface ScoreNameRow {
  name: string
  kind: ScoreKind
  scoredAt: number
}

/** `category` null: the row with the numbers. */
export interface ScoreSumRow {
  key: string
  keyName: string | null
  name: string
  category: string | null
  given: number
  /**
   * Over all scores of the name: the number of runs, how many of them have numbers, and the sums of these numbers and
   * of their squares.
   */
  runs: number
  numbers: number
  total: number
  squares: number
}

/** Scores of one name and step that are hidden from a judge who has not scored it. */
export interface HiddenScoreRow {
  run: string
  name: string
  eventId: string | null
  count: number
}

/** A score of a run or step that has several judges. */
export type JudgedRow = ScoreValue &
  Pick<ScoreRow, 'eventId' | 'authorKind' | 'authorId' | 'authorName' | 'run'> & { runId: string }

/** Whether a score replaces another one with the same id: the later by time, then by event id. */
export function isLater(one: SentScore, other: SentScore): boolean {
  if (one.scoredAt !== other.scoredAt) return one.scoredAt > other.scoredAt
  return (one.sentAs ?? '') > (other.sentAs ?? '')
}

export type ScoreRoom = Map<string, number>

export function takeRoom(room: ScoreRoom, name: string): boolean {
  const of = room.get(name)
  const keptBytes = room.values().reduce((sum, count) => sum + count, 0)
  if (keptBytes >= LIMITS.scoresOfRun || (of === undefined && room.size >= LIMITS.scoreNamesOfRun)) return false
  room.set(name, (of ?? 0) + 1)
  return true
}

/** Scores with the same run, step, name and author have the same id: the latest replaces the others. */
export function scoreId(of: Pick<ScoreRow, 'run' | 'eventId' | 'name' | 'authorKind' | 'authorId'>): string {
  return hash('sha256', [of.run, of.eventId ?? '', of.name, of.authorKind, of.authorId].join('\0'))
}

/** Sorted by name: the same on every engine, independent of the order of arrival. */
export function runScores(scores: readonly SummedScore[]): RunScoreSums[] {
  const sums = new Map<string, RunScoreSums>()
  for (const score of scores.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    sums.set(score.name, addScore(sums.get(score.name), score))
  }
  return [...sums.values()]
}

/** `replaced`: the earlier score whose place the new one takes. */
export function addScore(
  sums: RunScoreSums | undefined,
  score: SummedScore,
  replaced: SummedScore | null = null,
): RunScoreSums {
  const before = sums ?? { count: 0, numbers: 0, sum: [] }
  let { numbers, sum } = before
  if (score.number !== null) [numbers, sum] = [numbers + 1, addExactly(sum, score.number)]
  if (replaced !== null && replaced.number !== null) [numbers, sum] = [numbers - 1, addExactly(sum, -replaced.number)]
  const { kind, category, scoredAt, sentAs } = sums !== undefined && !isLater(score, sums) ? sums : score
  return {
    name: score.name,
    kind: kind as ScoreKind,
    number: numbers === 0 ? null : meanOf(sum, numbers),
    category,
    count: before.count + (replaced === null ? 1 : 0),
    scoredAt,
    sentAs,
    numbers,
    sum,
  }
}

/**
 * Exact sums in any order, from which values can be subtracted again: Shewchuk, Adaptive Precision Floating-Point
 * Arithmetic, 1997.
 */

/** Numbers of ascending size whose digits do not overlap. Their sum is exact. */
export type ExactSum = readonly number[]

/** Scaled, so that the sum of a thousand of the largest numbers stays finite. A power of two changes no digit. */
const SCALE = 2 ** -10

export function addExactly(sum: ExactSum, number: number): ExactSum {
  const parts: number[] = []
  let carried = number * SCALE
  for (const sumPart of sum) {
    const [large, small] = Math.abs(sumPart) > Math.abs(carried) ? [sumPart, carried] : [carried, sumPart]
    carried = large + small
    const lost = small - (carried - large)
    if (lost !== 0) parts.push(lost)
  }
  return carried === 0 ? parts : [...parts, carried]
}

export function meanOf(sum: ExactSum, count: number): number {
  return rounded(sum) / count / SCALE
}

function rounded(sum: ExactSum): number {
  const parts = [...sum]
  let total = parts.pop() ?? 0
  let lost = 0
  while (parts.length > 0 && lost === 0) {
    const lastPart = parts.pop() ?? 0
    const next = total + lastPart
    lost = lastPart - (next - total)
    total = next
  }
  // The exact sum may be halfway between two doubles, and was rounded to the even one. If the remaining parts have the sign of
  // the lost part, the other double is nearer.
  const twice = total + lost * 2
  const isHalf = lost !== 0 && twice - total === lost * 2
  return isHalf && Math.sign(lost) === Math.sign(parts.at(-1) ?? 0) ? twice : total
}
