export const UNSTORABLE = 'contains NUL or is not well-formed Unicode'

/** Every store keeps such a text unchanged: no NUL, no lone surrogates. */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

export function unstorableField<Field extends string>(
  input: Partial<Record<Field, unknown>>,
  fields: readonly Field[],
): Field | null {
  for (const field of fields) {
    const value = input[field]
    if (typeof value === 'string' && !isStorableText(value)) return field
  }
  return null
}

export function hasAtMost(text: string, codePoints: number): boolean {
  if (text.length <= codePoints) return true
  return text.length <= 2 * codePoints && Array.from(text).length <= codePoints
}
