/** Where the payload of one item of a JSON array stands in the text, and how deep it is nested; null: there is none. */
export interface PayloadSlice {
  start: number
  end: number
  /** Levels of objects and arrays, the payload itself being the first. */
  levels: number
}

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/**
 * Finds the value of the key `payload` in each item of a JSON array, so that the very text can be kept: parsing and
 * encoding again would change numbers, key order, duplicate keys and escapes.
 *
 * The text must be valid JSON and an array: it has been through JSON.parse. Of duplicate keys the last one counts, as
 * it does there. Items that are not objects give null.
 */
export function payloadSlices(text: string): (PayloadSlice | null)[] {
  const slices: (PayloadSlice | null)[] = []
  let at = skipSpace(text, text.indexOf('[') + 1)
  while (text.charCodeAt(at) !== CLOSE_BRACKET) {
    let end: number
    if (text.charCodeAt(at) === OPEN_BRACE) {
      const item = payloadOfObject(text, at)
      slices.push(item.payload)
      end = item.end
    } else {
      slices.push(null)
      end = valueEnd(text, at).end
    }
    at = skipSpace(text, end)
    if (text.charCodeAt(at) === COMMA) at = skipSpace(text, at + 1)
  }
  return slices
}

function payloadOfObject(text: string, open: number): { payload: PayloadSlice | null; end: number } {
  let payload: PayloadSlice | null = null
  let at = skipSpace(text, open + 1)
  while (text.charCodeAt(at) !== CLOSE_BRACE) {
    const keyEnd = stringEnd(text, at)
    const isPayload = isPayloadKey(text, at, keyEnd)
    const start = skipSpace(text, text.indexOf(':', keyEnd) + 1)
    const value = valueEnd(text, start)
    if (isPayload) payload = { start, end: value.end, levels: value.levels }
    at = skipSpace(text, value.end)
    if (text.charCodeAt(at) === COMMA) at = skipSpace(text, at + 1)
  }
  return { payload, end: at + 1 }
}

function isPayloadKey(text: string, start: number, end: number): boolean {
  if (end - start === '"payload"'.length) return text.startsWith('"payload"', start)
  // The key may be written with escapes: "p\u0061yload".
  if (end - start < '"payload"'.length) return false
  const key = text.slice(start, end)
  return key.includes('\\') && JSON.parse(key) === 'payload'
}

/** End (exclusive) and nesting of the value that starts at `at`. Iterative: a body may be nested 500,000 deep. */
function valueEnd(text: string, at: number): { end: number; levels: number } {
  let open = 0
  let levels = 0
  for (;;) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      at = stringEnd(text, at)
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      open += 1
      if (open > levels) levels = open
      at += 1
      continue
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      open -= 1
      at += 1
    } else if (code === COMMA || code === COLON || isSpace(code)) {
      at += 1
      continue
    } else {
      at = scalarEnd(text, at)
    }
    if (open === 0) return { end: at, levels }
  }
}

/** End (exclusive) of the string whose opening quote is at `at`. */
function stringEnd(text: string, at: number): number {
  let quote = at
  for (;;) {
    quote = text.indexOf('"', quote + 1)
    let backslash = quote - 1
    while (text.charCodeAt(backslash) === BACKSLASH) backslash -= 1
    if ((quote - backslash) % 2 === 1) return quote + 1
  }
}

/** End (exclusive) of a number, true, false or null. */
function scalarEnd(text: string, at: number): number {
  for (;;) {
    const code = text.charCodeAt(at)
    // NaN: the end of the text, which a valid array never reaches here.
    if (Number.isNaN(code) || code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET || isSpace(code))
      return at
    at += 1
  }
}

function skipSpace(text: string, at: number): number {
  while (isSpace(text.charCodeAt(at))) at += 1
  return at
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}
