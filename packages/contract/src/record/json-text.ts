/** Reads JSON as text, because a parser would round the numbers in recorded data. */

const STRING = /"(?:[^"\\]|\\.)*"/y

/** The text of one member of an object; of duplicate keys, the last one. Null if missing. `text` must be valid JSON. */
export function memberText(text: string, name: string): string | null {
  let textSlice: string | null = null
  let depth = 0
  let key: string | null = null
  let start = 0
  const endMember = (at: number): void => {
    if (depth === 1 && key === name) textSlice = text.slice(start, at).trim()
    if (depth === 1) key = null
  }
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case '"': {
        const end = stringEnd(text, at)
        if (depth === 1 && key === null) key = JSON.parse(text.slice(at, end)) as string
        at = end - 1
        break
      }
      case ':':
        if (depth === 1) start = at + 1
        break
      case ',':
        endMember(at)
        break
      case '{':
      case '[':
        depth += 1
        break
      case '}':
      case ']':
        endMember(at)
        depth -= 1
    }
  }
  return textSlice
}

/** The same JSON with one member or item per line; unchanged if that takes more than `charsMax`. */
export function indented(text: string, charsMax = Infinity): string {
  let out = ''
  let depth = 0
  const line = (): string => `\n${'  '.repeat(depth)}`
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? ''
    if (out.length > charsMax) return text
    if (character === '"') {
      const end = stringEnd(text, at)
      out += text.slice(at, end)
      at = end - 1
    } else if (character === '{' || character === '[') {
      const close = closesAtOnce(text, at)
      if (close !== null) {
        out += character + (text[close] ?? '')
        at = close
      } else {
        depth += 1
        out += character + line()
      }
    } else if (character === '}' || character === ']') {
      depth -= 1
      out += line() + character
    } else if (character === ',') out += character + line()
    else if (character === ':') out += ': '
    else if (!/\s/.test(character)) out += character
  }
  return out
}

function stringEnd(text: string, at: number): number {
  STRING.lastIndex = at
  return STRING.test(text) ? STRING.lastIndex : text.length
}

/** Index of the bracket that closes an empty list or object; null if it has content. */
function closesAtOnce(text: string, at: number): number | null {
  let next = at + 1
  while (/\s/.test(text[next] ?? '')) next += 1
  return text[next] === '}' || text[next] === ']' ? next : null
}

interface RawJson {
  rawJSON?: (text: string) => object
  isRawJSON?: (value: unknown) => boolean
}

/** Missing in browsers from before 2025. */
const { rawJSON, isRawJSON = () => false } = JSON as RawJson

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown

/**
 * Like JSON.parse, but numbers such as 9007199254740993 and 1e400 stay as recorded: each becomes an object that JSON.stringify
 * writes unchanged.
 */
export function parseRecorded(json: string): unknown {
  const keep: Reviver = (_, value, context) => {
    const source = context?.source
    const isOther = typeof value === 'number' && source !== undefined && source !== String(value)
    return isOther && rawJSON ? rawJSON(source) : value
  }
  return JSON.parse(json, keep as Parameters<typeof JSON.parse>[1])
}

export const isRecordedNumber = (value: unknown): boolean => typeof value === 'number' || isRawJSON(value)
