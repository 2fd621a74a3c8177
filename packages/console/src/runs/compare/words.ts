/** Two texts word by word. Pure. */
import { diffWordsWithSpace } from 'diff'

/** Longer texts are compared as far as this. */
export const COMPARED_CHARS = 40_000
/** Texts that differ in more words have little in common; they stand side by side as they are. */
const EDITS = 2_000
const COMPARE_MS = 100

export interface Word {
  text: string
  /** The other text does not have it. */
  isOwn: boolean
}

export interface BothWords {
  a: Word[]
  b: Word[]
}

/** Null: the texts differ too much. */
export function wordsOf(a: string, b: string): BothWords | null {
  const [left, right] = [a.slice(0, COMPARED_CHARS).toWellFormed(), b.slice(0, COMPARED_CHARS).toWellFormed()]
  const changes = diffWordsWithSpace(left, right, { maxEditLength: EDITS, timeout: COMPARE_MS })
  if (!changes) return null
  const words = (isOther: 'added' | 'removed', isOwn: 'added' | 'removed') =>
    changes.flatMap((change) => (change[isOther] ? [] : [{ text: change.value, isOwn: change[isOwn] }]))
  return { a: words('added', 'removed'), b: words('removed', 'added') }
}
