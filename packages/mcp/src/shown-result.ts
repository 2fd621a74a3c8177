/** Converts the JSON of an endpoint to a result for a model: names its source, and leaves out empty members. */

/** Larger results come in pieces. */
export const PIECE_CHARS = 40_000

/** Adds members to the beginning of a JSON object, without parsing it: payloads keep their exact text. */
export function withMembers(text: string, members: Readonly<Record<string, unknown>>): string {
  const more = JSON.stringify(members).slice(1, -1)
  const laterText = text.trimStart().slice(1)
  return `{${more}${laterText.trimStart().startsWith('}') ? '' : ','}${laterText}`
}

/** The items of a list, without their members that are null or empty. */
export function withoutEmpty(text: string): string {
  const page = JSON.parse(text) as { items?: unknown }
  return Array.isArray(page.items) ? JSON.stringify(keptValue(page)) : text
}

function keptValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(keptValue)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([name, member]) => [name, keptValue(member)] as const)
  // Keep the list itself, even if it is empty.
  return Object.fromEntries(members.filter(([name, member]) => name === 'items' || !isEmpty(member)))
}

function isEmpty(value: unknown): boolean {
  return value === null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0)
}

/** A part of a long text, and where to read on. */
export function pieceOf(text: string, offset: number): string {
  let end = Math.min(text.length, offset + PIECE_CHARS)
  // Do not cut within a character.
  if (end < text.length && /[\uD800-\uDBFF]/.test(text[end - 1] ?? '')) end--
  const piece = { offset, end, characters: text.length, ...(end < text.length && { nextOffset: end }) }
  return JSON.stringify({ piece, text: text.slice(offset, end) })
}
