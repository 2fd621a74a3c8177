/**
 * The words of a text, in the form in which values are compared. The form removes changes that a model makes when it copies a
 * value: NFKC, lower case, no invisible characters; white space and punctuation only divide words. It also has the decoded text
 * of encodings that a model can decode: percent-encoding, HTML entities, escapes of JSON, base64 and hexadecimal.
 */

// Web standards of every runtime.
declare const atob: (encoded: string) => string
declare const TextDecoder: new (
  label: string,
  options: { fatal: boolean; ignoreBOM: boolean },
) => { decode(bytes: Uint8Array): string }

/** UTF-16 units of one text that are read; the rest of a longer one is unknown. */
export const TEXT_CHARS = 262_144

const ASCII = /^[\0-\x7f]*$/
const INVISIBLE = /[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/g
/**
 * "name [at] example (dot) com". With the white space around it, the pattern could take minutes: it would try each space.
 */
const SPELLED = /[[({<]\s*(?:at|dot)\s*[\])}>]/g
/** A quick check before the full pattern: it takes a tenth of the time. */
const MAY_BE_SPELLED = /[[({<]\s*(?:at|dot)/

/** The words, divided by ASCII characters that `isOfWord` does not accept. */
export function plainOf(text: string): string {
  const isAscii = ASCII.test(text)
  const lower = (isAscii ? text : text.normalize('NFKC').replace(INVISIBLE, '')).toLowerCase()
  const plain = MAY_BE_SPELLED.test(lower) ? lower.replace(SPELLED, ' ') : lower
  return isAscii ? plain : plain.replace(/[^\p{L}\p{N}]+/gu, ' ')
}

export function isOfWord(code: number): boolean {
  return code > 127 || (code > 96 && code < 123) || (code > 47 && code < 58)
}

/** The text, and the decoded texts in it. At most twice as long. */
export function readings(text: string): string[] {
  const read = spellings(text)
  // Most texts have none. So check the last character of the shortest possible match first, as Boyer and Moore do.
  for (let from = 0; from + ENCODED_MIN <= text.length;) {
    let at = from + ENCODED_MIN
    while (at > from && ENCODES[text.charCodeAt(at - 1)]) at--
    if (at > from) from = at
    else {
      ENCODED.lastIndex = from
      const [encoded] = ENCODED.exec(text) as unknown as [string]
      from += encoded.length
      const bytes = bytesOf(encoded)
      const inner = bytes && textOf(bytes)
      if (inner !== undefined) read.push(inner)
    }
  }
  return read
}

/**
 * The text, and its decoded escapes. Used for a value that is looked up: its base64 is not decoded, because that may contain
 * words of the user beside an address that a stranger wrote.
 */
export function spellings(text: string): string[] {
  // Most texts have no escapes, and a pattern takes longer to find that out.
  if (!text.includes('%') && !text.includes('&') && !text.includes('\\')) return [text]
  const decoded = text.replace(ESCAPES, unescaped)
  return decoded === text ? [text] : [text, decoded]
}

const ESCAPES = /(?:%[0-9A-Fa-f]{2})+|&#\d{1,7};|&#[xX][0-9A-Fa-f]{1,6};|&[a-z]{2,8};|\\u[0-9A-Fa-f]{4}|\\n/g

function unescaped(escape: string): string {
  // Named entities separate words: `&commat;`, `&nbsp;`.
  if (escape === '\\n' || /^&[a-z]/.test(escape)) return ' '
  if (escape.startsWith('\\u')) return String.fromCharCode(Number(`0x${escape.slice(2)}`))
  if (escape.startsWith('%')) return textOf(hexBytes(escape.replaceAll('%', ''))) ?? escape
  // `&#64;` and `&#x40;`
  const code = Number(escape.slice(2, -1).replace(/^x/i, '0x'))
  return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : escape
}

/** Shorter words look like encoded text by chance. */
const ENCODED_MIN = 16
const ENCODED = /[\w+/-]+={0,2}/y
const ENCODES = Array.from({ length: 128 }, (_, code) => /[\w+/-]/.test(String.fromCharCode(code)))

function bytesOf(encoded: string): Uint8Array | undefined {
  if (/^(?:[0-9a-f]{2})+$/i.test(encoded)) return hexBytes(encoded)
  const digits = encoded.replace(/=+$/, '').replaceAll('-', '+').replaceAll('_', '/')
  if (digits.length % 4 === 1) return undefined
  return Uint8Array.from(atob(digits), (char) => char.charCodeAt(0))
}

function hexBytes(digits: string): Uint8Array {
  return Uint8Array.from({ length: digits.length / 2 }, (_, at) => Number(`0x${digits.slice(2 * at, 2 * at + 2)}`))
}

const UTF_8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const CONTROL = /(?![\t-\r])\p{Cc}/u

/** Undefined if the bytes are not a text that a model would read. */
function textOf(bytes: Uint8Array): string | undefined {
  try {
    const text = UTF_8.decode(bytes)
    return CONTROL.test(text) ? undefined : text
  } catch {
    return undefined
  }
}

/** The numbers among the words of a text, in one spelling: `$1,200.50` and `1200.5` are `1200.5`. */
export function numbersOf(text: string): string[] {
  const numbers = text.match(NUMBER) ?? []
  // Most numbers are spelled like this already.
  return numbers.map((digits) => (PLAIN.test(digits) ? digits : numberText(Number(digits.replaceAll(',', '')))))
}

const PLAIN = /^[1-9]\d*$/
const NUMBER = /(?<![\d.,])(?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d{1,9})?(?![\d.,]*\d)/g

export function numberText(value: number): string {
  return String(Math.abs(value))
}
