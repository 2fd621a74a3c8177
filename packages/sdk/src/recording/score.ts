import { readSafely } from './json.ts'
import type { Payload, ScoreDetails } from './event.ts'

/** @internal */
export const DETAILS = ['comment', 'eventId', 'author', 'id', 'agentId', 'agentName']

/** @internal A service takes no other name, because filters compare names by these signs. */
const NAME = /^[^<>=\s](?:[^<>=]{0,62}[^<>=\s])?$/u
const NUMBER_MAX = 1e9

/** @internal `problem`: why this is not a score. `scoreDetails` may be a text: the `comment`. */
export function scoreOf(
  name: unknown,
  value: unknown,
  scoreDetails: unknown,
): { payload: Payload; id: string | undefined; details: object } | { problem: string } {
  if (typeof name !== 'string' || !NAME.test(name)) {
    return { problem: 'its name must be a text of 1 to 64 characters, without < > = and outer spaces' }
  }
  const isValue =
    typeof value === 'boolean' ||
    (typeof value === 'number' ? Math.abs(value) <= NUMBER_MAX : typeof value === 'string' && value !== '')
  if (!isValue) return { problem: 'its value must be a number from -1e9 to 1e9, true, false, or a text' }
  const details =
    typeof scoreDetails === 'string'
      ? { comment: scoreDetails }
      : readSafely((): ScoreDetails => ({ ...(scoreDetails as object) }), {})
  const { comment, eventId: targetEventId, author, id } = details
  const known = Object.entries({ comment, targetEventId, author }).filter(
    ([, text]) => typeof text === 'string' && text !== '',
  )
  return {
    payload: { name, value, ...Object.fromEntries(known) },
    id: typeof id === 'string' && id !== '' ? id : undefined,
    details,
  }
}
