/** V8 gives the place of only some errors, and quotes the text. */

const [NEWLINE, QUOTE, BACKSLASH] = [0x0a, 0x22, 0x5c]

/** To find the place in a longer text would take 60 ms. */
const PLACED_CHARS = 1_048_576

export function jsonFault(text: string): string {
  if (text.length > PLACED_CHARS) return 'The body is not valid JSON'
  if (text.trim() === '') return 'The body is empty'
  const at = faultAt(text)
  // A text can have a line for each of its bytes, and a list of them would take a hundred times as much.
  let [line, begin] = [1, 0]
  for (let place = 0; place < at; place++) {
    if (text.charCodeAt(place) !== NEWLINE) continue
    line++
    begin = place + 1
  }
  const place = `line ${line}, column ${at - begin + 1}`
  return at === text.length
    ? `The body ends before its JSON is complete, at ${place}`
    : `The body is not valid JSON at ${place}`
}

const TOKEN = /[{}[\]:,]|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null/y

type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | ':' | ', or end'

/** Iterative, because a body can be nested 500,000 levels deep. */
function faultAt(text: string): number {
  const open: ('{' | '[')[] = []
  let expected: Expected = 'value'
  let end = 0
  for (;;) {
    const at = spaceEnd(text, end)
    end = text.charCodeAt(at) === QUOTE ? stringEnd(text, at) : at + matchAt(TOKEN, text, at)
    const next: Expected | null = end === at ? null : follow(text.charAt(at), expected, open)
    if (next === null) return at
    expected = next
  }
}

function follow(first: string, expected: Expected, open: ('{' | '[')[]): Expected | null {
  const inside = open.at(-1)
  if (first === '}' || first === ']') {
    const opener = first === '}' ? '{' : '['
    const canEnd = expected === ', or end' || expected === (first === '}' ? 'key or }' : 'value or ]')
    if (inside !== opener || !canEnd) return null
    open.pop()
    return ', or end'
  }
  if (first === ',') return expected !== ', or end' || !inside ? null : inside === '{' ? 'key' : 'value'
  if (first === ':') return expected === ':' ? 'value' : null
  if (expected === 'key' || expected === 'key or }') return first === '"' ? ':' : null
  if (expected !== 'value' && expected !== 'value or ]') return null
  if (first !== '{' && first !== '[') return ', or end'
  open.push(first)
  return first === '{' ? 'key or }' : 'value or ]'
}

// A regular expression is interpreted at its first use: it would take 40 ms for a body of blanks, or of one text.

function spaceEnd(text: string, from: number): number {
  for (let at = from; ; at++) {
    const code = text.charCodeAt(at)
    if (code !== 0x20 && code !== NEWLINE && code !== 0x0d && code !== 0x09) return at
  }
}

/** Its start, if it does not end. */
function stringEnd(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) return at + 1
    if (code < 0x20) return start
    if (code !== BACKSLASH) continue
    const length = escapeLength(text, at + 1)
    if (length === 0) return start
    at += length
  }
  return start
}

/** Without its backslash; 0: it is none. */
function escapeLength(text: string, at: number): number {
  const kind = text.charAt(at)
  if (kind !== 'u') return kind !== '' && '"\\/bfnrt'.includes(kind) ? 1 : 0
  for (let digit = at + 1; digit <= at + 4; digit++) if (!/[0-9a-fA-F]/.test(text.charAt(digit))) return 0
  return 5
}

function matchAt(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0].length ?? 0
}
