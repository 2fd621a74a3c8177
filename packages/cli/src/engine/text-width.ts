/** Fits text to a terminal. Widths are in cells: most emoji and East Asian characters take two. Pure. */
import stringWidth from 'fast-string-width'

const CUT = '…'
/** Created on first use, because a command that cuts nothing starts faster without it. */
let graphemes: Intl.Segmenter | undefined

export function widthOf(text: string): number {
  return stringWidth(text)
}

/** The text in at most `size` cells, cut in the middle: ids and names differ at their beginnings and ends. */
export function cutMiddle(text: string, size: number): string {
  if (widthOf(text) <= size) return text
  const letters = graphemesOf(text)
  const last = Math.floor((size - 1) / 2)
  const start = fitting(letters, size - 1 - last)
  const end = fitting(letters.reverse(), last)
  return `${start.join('')}${CUT}${end.reverse().join('')}`
}

/** The text in at most `size` cells, cut at its end: for sentences. */
export function cutEnd(text: string, size: number): string {
  // A text that was cut before already ends with the mark.
  return widthOf(text) <= size
    ? text
    : `${fitting(graphemesOf(text), size - 1)
        .join('')
        .replace(/…$/, '')}${CUT}`
}

function graphemesOf(text: string): string[] {
  graphemes ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  return Array.from(graphemes.segment(text), ({ segment }) => segment)
}

/** The first graphemes that fit. */
function fitting(letters: readonly string[], size: number): string[] {
  let used = 0
  const end = letters.findIndex((letter) => (used += widthOf(letter)) > size)
  return letters.slice(0, end === -1 ? letters.length : end)
}

export function pad(text: string, size: number, align: 'left' | 'right' = 'left'): string {
  const space = ' '.repeat(Math.max(0, size - widthOf(text)))
  return align === 'right' ? space + text : text + space
}
