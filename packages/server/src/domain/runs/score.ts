/** Source: docs/decisions/0006-runs.md. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Score, ScoreAgreement, ScoreSum, ScoreSums } from '@tacho/contract/runs/score.ts'
import { cohenKappa, meanMargin } from '@tacho/contract/runs/statistics.ts'
import { SCORE_NAME_PATTERN } from '@tacho/contract/engine/words.ts'
import type { Judge, JudgedRow, NewScore, ScoreRow, ScoreSumRow, ScoreValue } from '../../storage/runs/scores.ts'
import { isoOf, pick } from '../web/shown.ts'
import { hasAtMost, isStorableText } from '../web/text.ts'
import type { Payload } from '../../storage/record/events.ts'

const NAME = new RegExp(SCORE_NAME_PATTERN, 'u')

export function scoreOf(eventType: string, payload: Payload): NewScore | null {
  return eventType === 'SCORE' && scoreFaults(payload).length === 0 ? readScore(payload) : null
}

/** Names fields and rules, never a value: values must not reach replies or logs. */
export function scoreFaults({ name, value, targetEventId, author }: Payload): string[] {
  const faults: string[] = []
  if (!isText(name, LIMITS.scoreNameChars) || !NAME.test(name)) {
    faults.push(`name must be a text of 1 to ${LIMITS.scoreNameChars} characters, without < > = and outer spaces`)
  }
  if (valueOf(value) === null) {
    const category = `a text of 1 to ${LIMITS.scoreCategoryChars} characters`
    faults.push(`value must be a number of at most ${LIMITS.scoreNumberMax}, true, false, or ${category}`)
  }
  if (!isOptionalText(targetEventId, LIMITS.eventIdChars)) {
    faults.push(`targetEventId must be a text of 1 to ${LIMITS.eventIdChars} characters`)
  }
  if (!isOptionalText(author, LIMITS.scoreAuthorChars)) {
    faults.push(`author must be a text of 1 to ${LIMITS.scoreAuthorChars} characters`)
  }
  return faults
}

function readScore({ name, value, comment, targetEventId, author }: Payload): NewScore | null {
  const read = valueOf(value)
  if (read === null) return null
  const isComment = typeof comment === 'string' && comment !== '' && isStorableText(comment)
  return {
    name: String(name),
    ...read,
    comment: isComment ? cut(comment, LIMITS.scoreCommentChars) : null,
    author: typeof author === 'string' ? author : '',
    target: typeof targetEventId === 'string' ? targetEventId : null,
  }
}

export function valueOf(value: unknown): ScoreValue | null {
  if (typeof value === 'boolean') return { kind: 'BOOLEAN', number: value ? 1 : 0, category: null }
  if (typeof value === 'number') {
    // `+ 0` turns -0 into 0: only one of the databases would return it as 0.
    return Math.abs(value) <= LIMITS.scoreNumberMax ? { kind: 'NUMBER', number: value + 0, category: null } : null
  }
  return isText(value, LIMITS.scoreCategoryChars) ? { kind: 'CATEGORY', number: null, category: value } : null
}

const isText = (value: unknown, codePoints: number): value is string =>
  typeof value === 'string' && value !== '' && hasAtMost(value, codePoints) && isStorableText(value)
const isOptionalText = (value: unknown, codePoints: number): boolean =>
  value === undefined || value === null || isText(value, codePoints)

function cut(text: string, codePoints: number): string {
  if (hasAtMost(text, codePoints)) return text
  return Array.from(text.slice(0, 2 * codePoints))
    .slice(0, codePoints)
    .join('')
}

export function toScore(row: ScoreRow): Score {
  return {
    ...pick(row, 'id', 'eventId', 'name', 'comment', 'sentAs'),
    ...isoOf(row, 'scoredAt', 'importedAt'),
    value: shownValue(row),
    author: authorOf(row),
  }
}

const shownValue = ({ kind, number, category }: Pick<ScoreRow, 'kind' | 'number' | 'category'>): Score['value'] =>
  category ?? (kind === 'BOOLEAN' ? number === 1 : (number ?? 0))

const authorOf = ({ authorKind, authorId, authorName }: Pick<ScoreRow, 'authorKind' | 'authorId' | 'authorName'>) => ({
  kind: authorKind as Score['author']['kind'],
  id: authorId,
  name: authorName,
})

const sixDigits = (value: number): number => Math.round(value * 1e6) / 1e6

export function toScoreSums(rows: readonly ScoreSumRow[]): ScoreSum[] {
  return [...Map.groupBy(rows, ({ name }) => name)].map(([name, some]) => {
    const { runs = 0, numbers = 0, total = 0, squares = 0 } = some[0] ?? {}
    const margin = meanMargin({ count: numbers, sum: total, squares })
    return {
      name,
      runs,
      // Rounded, because the engines add up in different orders.
      mean: numbers === 0 ? null : sixDigits(total / numbers),
      meanMargin: margin === null ? null : sixDigits(margin),
      categories: some.flatMap(({ category, given }) => (category === null ? [] : { value: category, runs: given })),
    }
  })
}

export function toGroupedSums(rows: readonly ScoreSumRow[]): ScoreSums['items'] {
  return [...Map.groupBy(rows, ({ key }) => key)].map(([key, some]) => {
    return { key, name: some[0]?.keyName ?? null, scores: toScoreSums(some) }
  })
}

const keyOf = ({ authorKind, authorId }: Pick<JudgedRow, 'authorKind' | 'authorId'>): string =>
  `${authorKind} ${authorId}`

/**
 * The rows must come latest first. `blindTo`: a judge who sees no differences about targets that they have not judged.
 */
export function agreements(rows: readonly JudgedRow[], blindTo: Judge | null): ScoreAgreement['items'] {
  const authorKey = blindTo && keyOf({ authorKind: blindTo.kind, authorId: blindTo.id })
  const byAuthor = [...Map.groupBy(rows, keyOf).values()].toSorted((a, b) => b.length - a.length)
  const known = new Set(byAuthor.slice(0, LIMITS.agreementAuthors).map(([row]) => keyOf(row!)))
  const units = Map.groupBy(rows, ({ run, eventId }) => JSON.stringify([run, eventId]))
  const pairs = new Map<string, { one: JudgedRow; other: JudgedRow; isHidden: boolean }[]>()
  for (const unit of units.values()) {
    const isHidden = authorKey !== null && unit.every((row) => keyOf(row) !== authorKey)
    const judged = unit.filter((row) => known.has(keyOf(row))).toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
    for (const [index, one] of judged.entries()) {
      for (const other of judged.slice(index + 1)) {
        const key = JSON.stringify([keyOf(one), keyOf(other)])
        const pair = {
          one,
          other,
          isHidden: isHidden && (one.authorKind !== 'client' || other.authorKind !== 'client'),
        }
        const before = pairs.get(key)
        if (before) before.push(pair)
        else pairs.set(key, [pair])
      }
    }
  }
  return [...pairs.values()].map(agreementOf).toSorted((a, b) => b.both - a.both)
}

function agreementOf(pairs: readonly { one: JudgedRow; other: JudgedRow; isHidden: boolean }[]) {
  const values = pairs.map(({ one, other }) => ({ one: shownValue(one), other: shownValue(other) }))
  const { same, kappa, margin } = cohenKappa(
    values.map(({ one, other }) => [JSON.stringify(one), JSON.stringify(other)] as const),
  )
  const differing = pairs.flatMap(({ one: { runId, eventId }, isHidden }, index) => {
    const { one, other } = values[index]!
    return one === other ? [] : [{ isHidden, runId, eventId, one, other }]
  })
  const seen = differing.filter(({ isHidden }) => !isHidden)
  const { one, other } = pairs[0]!
  return {
    one: authorOf(one),
    other: authorOf(other),
    both: pairs.length,
    same,
    kappa: kappa === null ? null : sixDigits(kappa),
    kappaMargin: margin === null ? null : sixDigits(margin),
    hidden: differing.length - seen.length,
    differences: seen.slice(0, LIMITS.agreementDifferences).map(({ isHidden: _, ...difference }) => difference),
  }
}
