export interface JsonSlice {
  start: number
  end: number
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
 * The text of each payload: encoding it again would change numbers, key order, duplicate keys and escapes. JSON.parse
 * must have accepted the array; as there, the last of duplicate keys counts.
 */
export function payloadSlices(text: string): (JsonSlice | null)[] {
  const slices: (JsonSlice | null)[] = []
  eachItem(text, text.indexOf('['), (start) => {
    const item = text.charCodeAt(start) === OPEN_BRACE ? membersOf(text, start, PAYLOAD) : null
    slices.push(item?.slices[0] ?? null)
    return item?.end ?? valueEnd(text, start).end
  })
  return slices
}

const PAYLOAD = ['payload']

export function memberSlices(text: string, names: readonly string[]): (JsonSlice | null)[] {
  return membersOf(text, text.indexOf('{'), names).slices
}

/** `keys`: outermost first. Results have no order. Lists are searched too, and every duplicate key counts. */
export function valuesAt(text: string, keys: readonly string[]): string[] {
  const memberSlices: string[] = []
  const open = [{ at: skipSpace(text, 0), depth: 0 }]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { at, depth } = next
    const code = text.charCodeAt(at)
    if (code === OPEN_BRACKET) {
      eachItem(text, at, (start) => {
        open.push({ at: start, depth })
        return valueEnd(text, start).end
      })
    } else if (depth === keys.length) memberSlices.push(text.slice(at, valueEnd(text, at).end))
    else if (code === OPEN_BRACE) {
      eachMember(text, at, keys.slice(depth, depth + 1), (_, { start }) => open.push({ at: start, depth: depth + 1 }))
    }
  }
  return memberSlices
}

/** `take` returns the end of the item, so that each is scanned once. */
function eachItem(text: string, open: number, take: (start: number) => number): void {
  let at = skipSpace(text, open + 1)
  while (text.charCodeAt(at) !== CLOSE_BRACKET) {
    at = skipSpace(text, take(at))
    if (text.charCodeAt(at) === COMMA) at = skipSpace(text, at + 1)
  }
}

function membersOf(text: string, open: number, names: readonly string[]) {
  const slices: (JsonSlice | null)[] = names.map(() => null)
  const end = eachMember(text, open, names, (place, slice) => {
    slices[place] = slice
  })
  return { slices, end }
}

function eachMember(
  text: string,
  open: number,
  names: readonly string[],
  take: (place: number, slice: JsonSlice) => void,
): number {
  let at = skipSpace(text, open + 1)
  while (text.charCodeAt(at) !== CLOSE_BRACE) {
    const keyEnd = stringEnd(text, at)
    const place = placeOf(text, at, keyEnd, names)
    const start = skipSpace(text, text.indexOf(':', keyEnd) + 1)
    const { end, levels } = valueEnd(text, start)
    if (place >= 0) take(place, { start, end, levels })
    at = skipSpace(text, end)
    if (text.charCodeAt(at) === COMMA) at = skipSpace(text, at + 1)
  }
  return at + 1
}

function placeOf(text: string, start: number, end: number, names: readonly string[]): number {
  const written = end - start - 2
  const plain = names.findIndex((name) => written === name.length && text.startsWith(name, start + 1))
  // A sought name with a backslash cannot match literally, because the text has it escaped.
  if (plain >= 0 && !names[plain]?.includes('\\')) return plain
  // The key can contain escapes: "p\u0061yload".
  const key = text.slice(start, end)
  return key.includes('\\') ? names.indexOf(JSON.parse(key) as string) : -1
}

/** `end` is exclusive. Iterative, because a body can be nested 500,000 levels deep. */
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

function stringEnd(text: string, at: number): number {
  let quote = at
  for (;;) {
    quote = text.indexOf('"', quote + 1)
    let backslash = quote - 1
    while (text.charCodeAt(backslash) === BACKSLASH) backslash -= 1
    if ((quote - backslash) % 2 === 1) return quote + 1
  }
}

function scalarEnd(text: string, at: number): number {
  for (;;) {
    const code = text.charCodeAt(at)
    // NaN means the end of the text, which a valid array never reaches.
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
