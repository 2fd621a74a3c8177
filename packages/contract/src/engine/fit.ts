/** A text that every store accepts, in at most `max` code points: well-formed, without NUL. */
export function fit(text: string, max: number): string {
  // Before anything that walks the whole text.
  const start = text.length > 2 * max ? text.slice(0, 2 * max) : text
  const clean = start.toWellFormed().replaceAll('\0', '\u{FFFD}')
  if (clean.length <= max) return clean
  const points = Array.from(clean)
  if (start.length === text.length && points.length <= max) return clean
  return `${points.slice(0, max - 1).join('')}…`
}
