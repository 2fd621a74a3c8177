/** Texts in the contract's form: well-formed Unicode without NUL, lengths in code points. */

/** At most `maxChars` code points; a cut text ends with an ellipsis. */
export function cutText(text: string, maxChars: number): string {
  // A text has at most as many code points as code units.
  if (text.length <= maxChars) return text
  const chars = Array.from(text.slice(0, 2 * maxChars + 2))
  return chars.length <= maxChars ? text : `${chars.slice(0, maxChars - 1).join('')}…`
}

/** Cuts to UTF-16 units, and adds how many are missing. */
export function shortened(text: string, units: number): string {
  return text.length <= units ? text : `${text.slice(0, units)}… [cut: ${text.length - units} characters]`
}

/** Longer words are cut. */
const WORD_UNITS = 256

/** Cuts between words, because the mask, which comes later, does not recognise half a credential. */
export function shortenedAtWord(text: string, units: number, mark = '…'): string {
  if (text.length <= units) return text
  const sure = Math.max(0, units - WORD_UNITS)
  const keptText = text.slice(0, sure) + text.slice(sure, units).replace(/\S+$/, '')
  return `${keptText}${mark} [cut: ${text.length - keptText.length} characters]`
}

/** Keeps a third for the end, where a log has its error. writing.ts removes the text after the cut once it is masked. */
export function shortenedInside(text: string, units: number, mark: string): string {
  if (text.length <= units) return text
  const tail = Math.floor(units / 3)
  return shortenedAtWord(text.slice(0, -tail), units - tail, mark) + text.slice(-tail)
}

/** Replaces half surrogate pairs and NUL by the replacement character. */
export function wellFormed(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed()
  return whole.includes('\0') ? whole.replaceAll('\0', '\ufffd') : whole
}

type Measure = { byteLength(text: string): number }
const buffer = (globalThis as { Buffer?: Measure }).Buffer
const encoder = new TextEncoder()

export const byteLength: (text: string) => number = buffer
  ? (text) => buffer.byteLength(text)
  : (text) => encoder.encode(text).byteLength
