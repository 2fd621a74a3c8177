import type { Literal } from './syntax.ts'

/** A syntax error. `start` and `end` are UTF-16 offsets. Thrown only within the parser. */
export class SyntaxFault extends Error {
  readonly start: number
  readonly end: number
  constructor(message: string, start: number, end: number) {
    super(message)
    this.start = start
    this.end = end
  }
}

export type Token = { readonly start: number; readonly end: number } & (
  | { readonly kind: 'literal'; readonly value: Literal }
  // An int may be too large by one until its sign is known: -9223372036854775808 is valid.
  | { readonly kind: 'int'; readonly value: bigint }
  // A name in backticks is allowed only after a dot.
  | { readonly kind: 'name' | 'quoted name' | 'symbol' | 'end'; readonly text: string }
)

// All patterns are sticky. None can backtrack more than once over its input.
const SPACE = /(?:[\t\n\f\r ]|\/\/[^\n\r]*)*/y
const NAME = /[A-Z_a-z]\w*/y
const QUOTED_NAME = /`([\w./ -]+)`/y
const DOUBLE = /(?:\d*\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)/y
const INT = /0x[\dA-Fa-f]+|\d+/y
const TEXT = /([bB]?)([rR]?)("""|'''|"|')/y
const SYMBOL = /&&|\|\||[=!<>]=|[-+*/%<>!?:.,()[\]{}]/y

const KEYWORDS = new Map<string, Literal>([
  ['true', true],
  ['false', false],
  ['null', null],
])
const HINTS = new Map([
  ['=', '; write == to compare'],
  ['&', '; write && for and'],
  ['|', '; write || for or'],
  ['“', '; write "'],
  ['”', '; write "'],
  ['`', '; a name in backticks can have letters, digits, "_", ".", "-", "/" and spaces'],
])

/** Reads the token after `offset`; skips white space and comments. */
export function readToken(source: string, offset: number): Token {
  const start = match(SPACE, source, offset)?.end ?? offset
  if (start >= source.length) return { kind: 'end', text: '', start: source.length, end: source.length }

  const text = match(TEXT, source, start)
  if (text) return readText(source, start, text)
  const name = match(NAME, source, start)
  if (name) return readName(start, name)
  const double = match(DOUBLE, source, start)
  if (double) return readDouble(start, double)
  const int = match(INT, source, start)
  if (int) return readInt(source, start, int)
  const quoted = match(QUOTED_NAME, source, start)
  if (quoted) return { kind: 'quoted name', text: quoted.parts[1] as string, start, end: quoted.end }
  const symbol = match(SYMBOL, source, start)
  if (symbol) return { kind: 'symbol', text: symbol.parts[0] as string, start, end: symbol.end }
  const character = String.fromCodePoint(source.codePointAt(start) as number)
  const hint = HINTS.get(character) ?? ''
  throw new SyntaxFault(`unexpected character ${character}${hint}`, start, start + character.length)
}

type Matched = { readonly parts: readonly (string | undefined)[]; readonly end: number }

function match(pattern: RegExp, source: string, offset: number): Matched | undefined {
  pattern.lastIndex = offset
  const parts = pattern.exec(source)
  return parts ? { parts, end: pattern.lastIndex } : undefined
}

function readName(start: number, { parts: [text = ''], end }: Matched): Token {
  const value = KEYWORDS.get(text)
  if (value !== undefined) return { kind: 'literal', value, start, end }
  return { kind: text === 'in' ? 'symbol' : 'name', text, start, end }
}

function readDouble(start: number, { parts: [text], end }: Matched): Token {
  const value = Number(text)
  if (Number.isFinite(value)) return { kind: 'literal', value, start, end }
  throw new SyntaxFault('the number is too large', start, end)
}

function readInt(source: string, start: number, { parts: [digits = ''], end }: Matched): Token {
  if (/[uU]/.test(source.charAt(end))) throw new SyntaxFault('write the number without u', start, end + 1)
  return { kind: 'int', value: BigInt(digits), start, end }
}

const ESCAPES = new Map([
  ['a', '\x07'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['v', '\v'],
  ...Array.from('\\?"\'`', (character): [string, string] => [character, character]),
])
const CODE = /\\(?:[xX]([\dA-Fa-f]{2})|u([\dA-Fa-f]{4})|U([\dA-Fa-f]{8})|([0-3][0-7]{2}))/y

function readText(source: string, start: number, { parts, end }: Matched): Token {
  const [, bytes, raw, quote = ''] = parts
  if (bytes) throw new SyntaxFault('bytes are not part of the policy language', start, end)
  const isTriple = quote.length === 3
  let value = ''
  for (let at = end; at < source.length;) {
    if (source.startsWith(quote, at)) return { kind: 'literal', value, start, end: at + quote.length }
    const character = source.charAt(at)
    if (character === '\\' && !raw) {
      const escape = readEscape(source, at)
      value += escape.value
      at = escape.end
    } else if (character === '\n' || character === '\r') {
      if (!isTriple) break
      // Normalize line ends.
      value += '\n'
      at += source.startsWith('\r\n', at) ? 2 : 1
    } else {
      value += character
      at++
    }
  }
  throw new SyntaxFault(`the text is not closed with ${quote}`, start, end)
}

function readEscape(source: string, start: number): { readonly value: string; readonly end: number } {
  const value = ESCAPES.get(source.charAt(start + 1))
  if (value !== undefined) return { value, end: start + 2 }
  const code = match(CODE, source, start)
  if (!code) {
    const sequence = source.slice(start, start + 2)
    throw new SyntaxFault(`unknown escape ${sequence}; write \\\\ for a backslash`, start, start + sequence.length)
  }
  const [, x, u, U, octal] = code.parts
  const point = octal === undefined ? Number.parseInt((x ?? u ?? U) as string, 16) : Number.parseInt(octal, 8)
  if (point > 0x10_ffff || (point >= 0xd800 && point <= 0xdfff)) {
    throw new SyntaxFault('this is not a Unicode character', start, code.end)
  }
  return { value: String.fromCodePoint(point), end: code.end }
}
