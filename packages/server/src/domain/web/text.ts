export const UNSTORABLE = 'contains NUL or is not well-formed Unicode'

/** Whether every store keeps the text unchanged: no NUL, no lone surrogates. */
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

/** At most `chars` characters. If some are left out, the last one is `…`. */
export function cut(text: string, chars: number): string {
  if (text.length <= chars) return text
  // A character has at most two UTF-16 units.
  const all = Array.from(text.slice(0, 2 * (chars + 1)))
  return all.length <= chars ? text : `${all.slice(0, chars - 1).join('')}…`
}

/** Undefined if the reader throws, as some readers do for an invalid text. */
export function attempt<Value>(read: () => Value): Value | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** Undefined: the text is not JSON. */
export const parsedJson = (text: string): unknown => attempt(() => JSON.parse(text) as unknown)

export function nearestName(unknownName: string, known: readonly string[]): string | null {
  let best: string | null = null
  let bestDistance = Math.floor(unknownName.length / 3) + 1
  for (const name of known) {
    const distance = levenshtein(unknownName, name)
    if (distance < bestDistance) [best, bestDistance] = [name, distance]
  }
  return best
}

function levenshtein(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, column) => column)
  for (let line = 1; line <= one.length; line++) {
    const next = [line]
    for (let column = 1; column <= other.length; column++) {
      const changed = (row[column - 1] ?? 0) + (one[line - 1] === other[column - 1] ? 0 : 1)
      next.push(Math.min(changed, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[other.length] ?? 0
}
