/**
 * Makes messages of one cause equal. It reads the text in one pass: no expression can backtrack over more than a word.
 */

import { isUuid } from '../../storage/engine/uuid.ts'

export const VARIABLE = '…'

const CHARS_READ = 1_000
const CHARS_KEPT = 160
/** Longer words count as data. */
const WORD_CHARS = 40
/** A quoted text with at least this many words is a sentence, so its words are read too. */
const SENTENCE_WORDS = 4

type Token = { kind: 'word' | 'variable' | 'between'; text: string }

export function messageTemplate(message: string): string {
  // Replace braces of JSON, which only make the message longer.
  const text = message
    .slice(0, CHARS_READ)
    .toWellFormed()
    .normalize('NFC')
    .replaceAll(/[\s{}]+/g, ' ')
    .trim()
  const tokens: Token[] = []
  const closings = new Set<number>()
  const quotes = closingQuotes(text)
  let at = 0
  while (at < text.length) {
    const char = text[at]!
    const closing = closings.has(at) ? undefined : quotes(at)
    if (char === ' ') {
      tokens.push(between(' '))
      at++
    } else if (closing !== undefined) {
      const quoted = text.slice(at + 1, closing)
      if (isRead(quoted) || text[closing + 1] === ':') closings.add(closing)
      else {
        tokens.push(isCode(quoted) ? word(quoted) : variable())
        at = closing
      }
      at++
    } else if (isQuote(char)) {
      at++
    } else {
      const end = endOfWord(text, at, quotes)
      addWord(tokens, text.slice(at, end))
      at = end
    }
  }
  return cut(joined(datesReplaced(tokens)))
}

const word = (text: string): Token => ({ kind: 'word', text })
const variable = (): Token => ({ kind: 'variable', text: VARIABLE })
const between = (text: string): Token => ({ kind: 'between', text })

const QUOTES = new Map([
  ['"', '"'],
  ["'", "'"],
  ['`', '`'],
  ['“', '”'],
  ['„', '“'],
  ['‘', '’'],
  ['«', '»'],
])
const CLOSINGS = new Set(QUOTES.values())
const isQuote = (char: string): boolean => QUOTES.has(char) || CLOSINGS.has(char)
const isLetter = (char: string | undefined): boolean => char !== undefined && /[\p{L}\p{N}]/u.test(char)

/** Finds the end of a quotation; undefined: none starts at this place. Call it with ascending places. */
function closingQuotes(text: string): (at: number) => number | undefined {
  const placeholders = new Map<string, number>()
  return (at) => {
    const mark = QUOTES.get(text[at] ?? '')
    // A mark after a letter opens nothing: it is an apostrophe or a closing mark.
    if (mark === undefined || isLetter(text[at - 1])) return undefined
    let end = placeholders.get(mark) ?? 0
    while (end !== -1 && end <= at) {
      end = text.indexOf(mark, at + 1)
      while (end !== -1 && mark === "'" && isLetter(text[end + 1])) end = text.indexOf(mark, end + 1)
    }
    placeholders.set(mark, end)
    return end === -1 ? undefined : end
  }
}

const isRead = (quoted: string): boolean => quoted.split(' ', SENTENCE_WORDS).length >= SENTENCE_WORDS

/** Names in code, such as `invalid_request_error`, describe the error. Other quoted texts are data. */
const isCode = (quoted: string): boolean =>
  quoted.length <= WORD_CHARS && /^[A-Za-z_.]+$/.test(quoted) && /[A-Za-z]_[A-Za-z]|[a-z][A-Z]/.test(quoted)

function endOfWord(text: string, from: number, quotes: (at: number) => number | undefined): number {
  let end = from + 1
  while (end < text.length && text[end] !== ' ' && quotes(end) === undefined) {
    const char = text[end]!
    if (isQuote(char) && !(char === "'" && isLetter(text[end + 1]))) break
    end++
  }
  return end
}

const OPENING = /^[([<,;:=|*#$€£]+/u
const CLOSING = /[)\]>,;:=|*.!?%]+$/u
/** After one of these words, a number identifies the error. */
const NUMBERED = new Set(['status', 'code', 'http', 'errno', 'error', 'exit', 'signal', 'sqlstate', 'statuscode'])
const NAMES_WITH_DIGITS = new Set(
  `utf8 utf16 sha1 sha256 sha512 md5 base64 int8 int16 int32 int64 uint8 uint32 float32 float64 http2 http3 ipv4 ipv6 s3
  ec2 k8s p95 p99 oauth2 x509 i18n win32 tls1`.split(/\s+/),
)

function addWord(tokens: Token[], text: string): void {
  const opening = OPENING.exec(text)?.[0] ?? ''
  const closing = opening.length < text.length ? (CLOSING.exec(text)?.[0] ?? '') : ''
  const core = text.slice(opening.length, text.length - closing.length)
  if (opening !== '') tokens.push(between(opening))
  if (/^HTTP\/\d(?:\.\d)?$/.test(core)) tokens.push(word('HTTP'))
  else if (isWholeVariable(core)) tokens.push(variable())
  else addParts(tokens, core)
  if (closing !== '') tokens.push(between(closing))
}

function isWholeVariable(core: string): boolean {
  if (core.includes('://') || core.includes('***') || isUuid(core)) return true
  const at = core.indexOf('@')
  if (at > 0 && core.includes('.', at)) return true
  if (/^(?:~|\.{1,2})?[/\\]./.test(core) || /^[A-Za-z]:[/\\]/.test(core)) return true
  const slashes = core.split(/[/\\]/, 3).length - 1
  return slashes === 2 || (slashes === 1 && /\.[A-Za-z0-9]{1,5}$/.test(core))
}

function addParts(tokens: Token[], core: string): void {
  for (const [part] of core.matchAll(/[\p{L}\p{M}\p{N}]+|[^\p{L}\p{M}\p{N}]+/gu)) {
    if (!isLetter(part[0])) tokens.push(between(part))
    else addPart(tokens, part)
  }
}

function addPart(tokens: Token[], tokenText: string): void {
  const last = lastWord(tokens)
  const isCodeHere = last === null ? /^(?:[45]\d\d|[A-Z]{1,8}\d{3,5})$/.test(tokenText) : NUMBERED.has(last)
  if (isCodeHere && /^[A-Z]{0,8}\d{1,5}$/.test(tokenText)) tokens.push(word(tokenText))
  else if (!/\p{N}/u.test(tokenText))
    tokens.push(isRandom(tokenText, tokens.at(-1)?.text) ? variable() : word(tokenText))
  else if (NAMES_WITH_DIGITS.has(tokenText.toLowerCase())) tokens.push(word(tokenText))
  else {
    // `order4711` is the word `order` with a number. `9f3a2c` and `011CSHoEv` are no words.
    const name = /^(?:\p{Lu}?\p{Ll}{2,}|\p{Lu}{2,})(?=\p{N}+$)/u.exec(tokenText)?.[0]
    if (name !== undefined && tokenText.length <= WORD_CHARS) tokens.push(word(name))
    tokens.push(variable())
  }
}

/** Recognizes a digest without a digit, after its prefix, as in `req_ruwyRTVXac`. */
function isRandom(tokenText: string, before: string | undefined): boolean {
  if (tokenText.length > WORD_CHARS) return true
  const isNamed = (before === '_' || before === '-') && tokenText.length >= 8
  return (
    isNamed && (/[a-z][A-Z]{2}|[A-Z]{2}[a-z]{2}/.test(tokenText) || /[a-z][A-Z][A-Za-z]*[a-z][A-Z]/.test(tokenText))
  )
}

/** The last word in lower case; null: none yet; empty: it was a variable part. */
function lastWord(tokens: Token[]): string | null {
  const last = tokens.findLast(({ kind }) => kind !== 'between')
  return last === undefined ? null : last.kind === 'word' ? last.text.toLowerCase() : ''
}

const OF_DATES = new Set(
  `Mon Tue Wed Thu Fri Sat Sun Monday Tuesday Wednesday Thursday Friday Saturday Sunday Jan Feb Mar Apr May Jun Jul Aug
  Sep Oct Nov Dec January February March April June July August September October November December AM PM UTC GMT`.split(
    /\s+/,
  ),
)

const UNITS = new Set(
  'ms s sec secs second seconds m min mins minute minutes h hour hours day days kb mb gb kib mib gib'.split(' '),
)

function datesReplaced(tokens: Token[]): Token[] {
  const parts = tokens.filter(({ kind }) => kind !== 'between')
  const dates = new Set<Token>()
  parts.forEach((token, index) => {
    if (parts[index - 1]?.kind === 'variable' && UNITS.has(token.text.toLowerCase())) dates.add(token)
  })
  const isVariable = (token: Token | undefined) =>
    token !== undefined && (token.kind === 'variable' || dates.has(token))
  parts.forEach((token, index) => {
    if (OF_DATES.has(token.text) && (isVariable(parts[index - 1]) || isVariable(parts[index + 1]))) dates.add(token)
  })
  parts.toReversed().forEach((token, index, all) => {
    if (OF_DATES.has(token.text) && isVariable(all[index - 1])) dates.add(token)
  })
  return tokens.map((token) => (dates.has(token) ? variable() : token))
}

/** Merges variable parts that have only marks between them. */
function joined(tokens: Token[]): string {
  let text = ''
  let marks: string | null = null
  for (const token of tokens) {
    if (token.kind === 'between') {
      if (marks === null) text += token.text
      else marks += token.text
    } else if (token.kind === 'word') {
      text += (marks ?? '') + token.text
      marks = null
    } else {
      if (marks === null) text = `${text.replace(/(^|[\s([{<=:,])[-+]$/u, '$1')}${VARIABLE}`
      else if (!/^[\s.,:;\-/_+]*$/.test(marks)) text += marks + VARIABLE
      marks = ''
    }
  }
  return text + (marks ?? '')
}

function cut(text: string): string {
  const plain = text.replaceAll(/ +/g, ' ').trim()
  if (plain.length <= CHARS_KEPT) return plain
  const end = plain.lastIndexOf(' ', CHARS_KEPT)
  return plain
    .slice(0, end > CHARS_KEPT / 2 ? end : CHARS_KEPT)
    .toWellFormed()
    .replace(/[\s,;:]+$/u, '')
}
