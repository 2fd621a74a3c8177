import type { Static, TSchema } from 'typebox'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { faultLine, schemaFaults, sizeFaults, validatorOf, type SchemaFault } from './schema-faults.ts'

export interface BodyFault {
  ok: false
  code: 'body_too_large' | 'invalid_json' | 'invalid_request'
  detail: string
  errors?: SchemaFault[]
}

export function readJsonBody<Schema extends TSchema>(
  schema: Schema,
  bytes: Uint8Array | null,
): { ok: true; body: Static<Schema> } | BodyFault {
  if (bytes && hasMoreValues(bytes, LIMITS.bodyValues)) {
    return {
      ok: false,
      code: 'body_too_large',
      detail: `The body must have at most ${LIMITS.bodyValues} values and names`,
    }
  }
  const text = bytes === null ? '' : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return { ok: false, code: 'invalid_json', detail: jsonFault(text) }
  }
  const validator = validatorOf(schema)
  if (validator.Check(body)) return { ok: true, body: body as Static<Schema> }
  const tooMany = sizeFaults(schema, body)
  const errors = tooMany.length > 0 ? tooMany : schemaFaults(schema, validator.Errors(body))
  return { ok: false, code: 'invalid_request', detail: faultLine(errors), errors }
}

/**
 * Counts values before parsing: millions of empty lists fit in a body and take a hundred times its size. A name that
 * occurs once takes ten times as long as a value, so names count too, unless the body is a list of objects with the
 * same names.
 */

const QUOTE_BYTE = 0x22
const BACKSLASH_BYTE = 0x5c
const COMMA = 0x2c
const COLON = 0x3a

export function hasMoreValues(bytes: Uint8Array, most: number, { names = true } = {}): boolean {
  if (bytes.length <= most) return false
  let values = 1
  let isText = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (isText) {
      if (byte === BACKSLASH_BYTE) at++
      else if (byte === QUOTE_BYTE) isText = false
    } else if (byte === QUOTE_BYTE) isText = true
    // Tests for `[` and `{`, which differ in one bit.
    else if (byte === COMMA || (names && byte === COLON) || ((byte ?? 0) | 0x20) === 0x7b) {
      values++
      if (values > most) return true
    }
  }
  return false
}

/** V8 reports the place of only some errors, and quotes the text, so the place is found here. */

const [NEWLINE, QUOTE, BACKSLASH] = [0x0a, 0x22, 0x5c]

/** Finding the place in a longer text would take 60 ms. */
const PLACED_CHARS = 1_048_576

export function jsonFault(text: string): string {
  if (text.length > PLACED_CHARS) return 'The body is not valid JSON'
  if (text.trim() === '') return 'The body is empty'
  const at = faultAt(text)
  // Counts lines without a list of them: a text may have a line for each byte, and a list would take a hundred times as
  // much.
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

// A loop, because a regular expression is interpreted at its first use, which would take 40 ms for a body of blanks or
// of one text.

function spaceEnd(text: string, from: number): number {
  for (let at = from; ; at++) {
    const code = text.charCodeAt(at)
    if (code !== 0x20 && code !== NEWLINE && code !== 0x0d && code !== 0x09) return at
  }
}

/** Returns `start` if the string does not end. */
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

/** The length of an escape without its backslash; 0: no valid escape. */
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
