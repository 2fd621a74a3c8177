/**
 * Groups hits with the same text: otherwise a system prompt that each run sends would fill pages before a user's words.
 */
import type { SearchHit } from '@tacho/contract/runs/search.ts'

export interface HitGroup {
  /** The newest hit of the group. */
  hit: SearchHit
  /** Older hits with the same type, label and text. */
  others: SearchHit[]
}

export const textOf = (snippet: SearchHit['snippet']): string => snippet.map(({ text }) => text).join('')

/** Groups in the order of their first hits. */
export function groupHits(hits: readonly SearchHit[]): HitGroup[] {
  const groups = new Map<string, HitGroup>()
  for (const hit of hits) {
    const { eventType, label } = hit.event
    const key = JSON.stringify([eventType, label, textOf(hit.snippet)])
    const group = groups.get(key)
    if (group) group.others.push(hit)
    else groups.set(key, { hit, others: [] })
  }
  return [...groups.values()]
}

const USER_WORDS = 'type:user_input'
/** Maximum number of words of a query to which a type can be added. */
const WORDS_MAX = 28
const CHARS_MAX = 950

/** The query for users' texts, and the one for all others; null if it is empty, contains a type, or is too long. */
export function splitQuery(q: string): { users: string; others: string } | null {
  if (
    q.trim() === '' ||
    /type:/i.test(q) ||
    q.length > CHARS_MAX ||
    (q.match(/[\p{L}\p{N}]+/gu)?.length ?? 0) > WORDS_MAX
  )
    return null
  return { users: `${q} ${USER_WORDS}`, others: `${q} -${USER_WORDS}` }
}
