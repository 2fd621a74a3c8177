/**
 * Makes text of clients safe to read: nothing invisible, nothing that reorders or hides other text, and a warning for
 * letters that only look like others. Pure, and linear in the text. Source:
 * docs/decisions/0153-texts-that-cannot-lie.md.
 */

/**
 * `escape`: a character that would be invisible. `lookalike`: a word with letters that look like other letters; `note`
 * names them.
 */
export type ShownPart =
  | { kind: 'text'; text: string }
  | { kind: 'escape'; text: string; raw: string }
  | { kind: 'lookalike'; text: string; note: string }

/** Characters that join emoji. Elsewhere they are invisible. */
const JOINS_EMOJI = String.raw`(?<=\p{Extended_Pictographic}\p{Emoji_Modifier}?\ufe0f?)\u200d(?=\p{Extended_Pictographic})|(?<=\p{Extended_Pictographic})\ufe0f`
/** Controls, formats such as direction marks, spaces other than U+0020, characters without a glyph, and overlays. */
const HIDDEN = String.raw`[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Default_Ignorable_Code_Point}\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000\u0334-\u0338\u20d2\u20d3\u20d8-\u20da\u20e5-\u20eb]`
/** Marks beyond the third on one letter. No language needs them, and they can cover other lines. */
const PILED = String.raw`(?<=\p{M}{3})\p{M}`
const UNSAFE = new RegExp(`${JOINS_EMOJI}|(?<hidden>${HIDDEN}|${PILED})`, 'gu')

/** Escapes invisible characters: `\n`, `\u202e`. The escapes are those of JSON, so escaped JSON keeps its meaning. */
export function printable(text: string): string {
  return text
    .toWellFormed()
    .replace(UNSAFE, (character, hidden: string | undefined) => (hidden === undefined ? character : escaped(character)))
}

/** Like `printable`, for JSON text, whose line breaks and tabs are white space. The JSON keeps its meaning. */
export function printableJson(json: string): string {
  return json
    .toWellFormed()
    .replace(UNSAFE, (character, hidden: string | undefined) =>
      hidden === undefined || /[\n\r\t]/.test(character) ? character : escaped(character),
    )
}

const SHORT = new Map([
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
])

function escaped(character: string): string {
  const unit = (at: number) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`
  return SHORT.get(character) ?? (character.length === 1 ? unit(0) : unit(0) + unit(1))
}

/** `lineBreaks`: leave line breaks as they are, for a text of several lines. */
export function shownParts(text: string, { lineBreaks = false }: { lineBreaks?: boolean } = {}): ShownPart[] {
  const wellFormed = text.toWellFormed()
  const parts: ShownPart[] = []
  let end = 0
  for (const match of wellFormed.matchAll(UNSAFE)) {
    const raw = match[0]
    if (match.groups?.['hidden'] === undefined || (lineBreaks && raw === '\n')) continue
    readWords(wellFormed.slice(end, match.index), parts)
    parts.push({ kind: 'escape', text: escaped(raw), raw })
    end = match.index + raw.length
  }
  readWords(wellFormed.slice(end), parts)
  return parts
}

/** Warnings about the letters of a text, one sentence per word. Invisible characters do not divide a word. */
export function lookalikes(text: string): string[] {
  const joined = text.toWellFormed().replace(UNSAFE, (character) => (/\s/u.test(character) ? ' ' : ''))
  const parts: ShownPart[] = []
  readWords(joined, parts)
  const notes = parts.flatMap((shownPart) =>
    shownPart.kind === 'lookalike' ? [`“${shownPart.text}”: ${shownPart.note}`] : [],
  )
  return [...new Set(notes)]
}

const WORD = /[\p{L}\p{M}\p{N}_]+/gu
const ASCII_ONLY = /^[\0-\u007f]*$/

/** Adds to `parts` one by one, because 100,000 arguments of one call would not fit on the stack. */
function readWords(text: string, parts: ShownPart[]): void {
  let end = 0
  const words = ASCII_ONLY.test(text) ? [] : text.matchAll(WORD)
  for (const { 0: word, index } of words) {
    const note = noteOn(word)
    if (note === null) continue
    if (index > end) parts.push({ kind: 'text', text: text.slice(end, index) })
    parts.push({ kind: 'lookalike', text: word, note })
    end = index + word.length
  }
  if (end < text.length) parts.push({ kind: 'text', text: text.slice(end) })
}

/** Scripts with letters that look like letters of another script. */
const SCRIPTS = ['Latin', 'Cyrillic', 'Greek', 'Armenian', 'Cherokee', 'Coptic', 'Lisu', 'Hebrew'].map(
  (name) => [name, new RegExp(String.raw`\p{Script=${name}}`, 'gu')] as const,
)
/** Wide and mathematical letters and digits, which look like plain ones. */
const STYLED = /[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\u{1d400}-\u{1d7ff}]/gu
/** Cyrillic and Greek letters with the shape of a Latin one. A word of only such letters looks Latin. */
const LATIN_SHAPES = /^[асԁеһіјӏорԛѕԝхуүАВЕЗІЈКМНОРЅТХҮԌԜοανιυρκΑΒΕΖΗΙΚΜΝΟΡΤΥΧ_\p{N}]+$/u
const LETTERS = 2
const NAMED = 3

function noteOn(word: string): string | null {
  if (ASCII_ONLY.test(word)) return null
  const styled = word.match(STYLED)
  if (styled) return `letters that look like plain ones: ${named(styled)}`
  const usedScripts = SCRIPTS.flatMap(([name, script]) => {
    const letters = word.match(script)
    return letters ? [{ name, letters }] : []
  })
  const [first, ...others] = usedScripts.toSorted((one, other) => other.letters.length - one.letters.length)
  if (!first) return null
  if (others.length > 0) {
    const odd = others.map(({ name, letters }) => `${name} ${named(letters)}`).join(', ')
    return `${first.name} letters mixed with ${odd}`
  }
  if (first.name === 'Latin' || first.letters.length < LETTERS || !LATIN_SHAPES.test(word)) return null
  return `${first.name} letters that look like Latin ones: ${named(first.letters)}`
}

function named(letters: readonly string[]): string {
  const distinct = [...new Set(letters)]
  const point = (letter: string) => `U+${letter.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}`
  const shown = distinct.slice(0, NAMED).map((letter) => `${letter} ${point(letter)}`)
  return shown.join(', ') + (distinct.length > NAMED ? ' …' : '')
}

/** A text that every store accepts, in at most `max` code points: well-formed, without NUL. */
export function shortenedText(text: string, max: number): string {
  // Cut first, because everything below reads the whole text.
  const start = text.length > 2 * max ? text.slice(0, 2 * max) : text
  const clean = start.toWellFormed().replaceAll('\0', '\u{FFFD}')
  if (clean.length <= max) return clean
  const points = Array.from(clean)
  if (start.length === text.length && points.length <= max) return clean
  return `${points.slice(0, max - 1).join('')}…`
}
