/** What is wrong with a text that is not storable, after the name of its field. */
export const UNSTORABLE = 'contains NUL or is not well-formed Unicode'

/** Whether every store keeps the text unchanged: no NUL, and well-formed (no lone surrogates). */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

export function hasAtMost(text: string, codePoints: number): boolean {
  if (text.length <= codePoints) return true
  return text.length <= 2 * codePoints && Array.from(text).length <= codePoints
}
