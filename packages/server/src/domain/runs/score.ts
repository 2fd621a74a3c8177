/** Source: docs/decisions/0006-runs.md. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Score, ScoreSum, ScoreSums } from '@tacho/contract/runs/score.ts'
import { meanMargin } from '@tacho/contract/runs/statistics.ts'
import { SCORE_NAME_PATTERN } from '@tacho/contract/engine/words.ts'
import type { NewScore, ScoreRow, ScoreSumRow, ScoreValue } from '../../storage/runs/scores.ts'
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
    // Not -0, which one engine returns as 0.
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
  const { kind, number, category, authorKind, authorId: id, authorName: name } = row
  return {
    ...pick(row, 'id', 'eventId', 'name', 'comment', 'sentAs'),
    ...isoOf(row, 'scoredAt', 'importedAt'),
    value: category ?? (kind === 'BOOLEAN' ? number === 1 : (number ?? 0)),
    author: { kind: authorKind as Score['author']['kind'], id, name },
  }
}

const sixDigits = (value: number): number => Math.round(value * 1e6) / 1e6

export function toScoreSums(rows: readonly ScoreSumRow[]): ScoreSum[] {
  return [...Map.groupBy(rows, ({ name }) => name)].map(([name, some]) => {
    const { runs = 0, numbers = 0, total = 0, squares = 0 } = some[0] ?? {}
    const margin = meanMargin({ count: numbers, sum: total, squares })
    return {
      name,
      runs,
      // The engines add up in different orders.
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
