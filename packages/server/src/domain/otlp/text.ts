/** OpenTelemetry does not limit its texts; events limit theirs. */
import { hasAtMost } from '../text.ts'

/** A text that every store accepts, in at most `max` code points. */
export function fit(text: string, max: number): string {
  // Before anything that walks the whole text.
  const start = text.length > 2 * max ? `${text.slice(0, 2 * max)}` : text
  const clean = start.toWellFormed().replaceAll('\0', '\u{FFFD}')
  if (start.length === text.length && hasAtMost(clean, max)) return clean
  return `${Array.from(clean)
    .slice(0, max - 1)
    .join('')}…`
}
