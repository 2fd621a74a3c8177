/** V8 gives the place of only some errors, and quotes the text. */

export function jsonFault(text: string): string {
  if (text.trim() === '') return 'The body is empty'
  const at = faultAt(text)
  // A text can have a line for each of its bytes, and a list of them would take a hundred times as much.
  let [line, begin] = [1, 0]
  for (let end = text.indexOf('\n'); end !== -1 && end < at; end = text.indexOf('\n', begin)) {
    line++
    begin = end + 1
  }
  const place = `line ${line}, column ${at - begin + 1}`
  return at === text.length
    ? `The body ends before its JSON is complete, at ${place}`
    : `The body is not valid JSON at ${place}`
}

const SPACE = /[ \t\n\r]*/y
const TOKEN =
  // eslint-disable-next-line no-control-regex
  /[{}[\]:,]|"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null/y

type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | ':' | ', or end'

/** Iterative, because a body can be nested 500,000 levels deep. */
function faultAt(text: string): number {
  const open: ('{' | '[')[] = []
  let expected: Expected = 'value'
  let end = 0
  for (;;) {
    const at = end + matchAt(SPACE, text, end)
    end = at + matchAt(TOKEN, text, at)
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

function matchAt(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0].length ?? 0
}
