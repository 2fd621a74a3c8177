/** Cuts long texts first, then the ends of long lists, and marks every cut. */
import type { Diagnostics } from '../delivery/diagnostics.ts'
import type { Json, JsonObject } from './json.ts'
import { byteLength } from './text.ts'

/** An escape in JSON text; the second character may be a backslash itself. */
const ESCAPE = /\\(?:u.{4}|.)/g

/**
 * A cut that was made before masking, with the JSON text after it. The limit is longer than a private key, or any token in a
 * header. The mark before the space may be masked, so it is optional.
 */
const REST = /[\x7f…]? \[cut: (\d{1,9}) characters\]((?:[^"\\]|\\[^]){0,16384})/g

export const withoutRests = (json: string): string =>
  json.replace(REST, (_, before, rest: string) => `… [cut: ${+before + rest.replace(ESCAPE, '.').length} characters]`)

/** Texts are cut to no less than this many bytes before lists are cut. */
const TEXT_BYTES_MIN = 256
/** Room for "… [cut: 1234567 characters]" in each cut text. */
const TEXT_MARK_BYTES = 48
/** Room for the marker of a list or object that ends early. */
const LIST_MARK_BYTES = 64
/** Room for the key that marks the payload as shortened. */
const SUMMARY_BYTES = 160

/**
 * The JSON text in at most `maxBytes`. In `tachoShortened`, `originalBytes` is the size before, `cutTexts` counts cut texts,
 * and `cutLists` lists and objects that end early.
 */
export function shorten(
  payload: JsonObject,
  originalBytes: number,
  maxBytes: number,
  { count, report }: Pick<Diagnostics, 'count' | 'report'>,
): string {
  count('shortened')
  report('warning', 'payload_shortened', `A payload of ${originalBytes} bytes was shortened to ${maxBytes}.`)
  const room = maxBytes - SUMMARY_BYTES
  const sizes: number[] = []
  const marks = measure(payload, sizes) * LIST_MARK_BYTES
  const structure = originalBytes - sizes.reduce((sum, bytes) => sum + bytes, 0)
  const level = Math.max(TEXT_BYTES_MIN, waterLevel(sizes, room - structure - marks))
  const { text, ...cuts } = write(payload, level, room)
  const summary = JSON.stringify({ originalBytes, ...cuts })
  return `${text.slice(0, -1)}${text === '{}' ? '' : ','}"tachoShortened":${summary}}`
}

/** Size in JSON, without quotes. */
const sizeOf = (text: string): number => byteLength(JSON.stringify(text)) - 2

/** Adds the sizes of texts. @returns how many levels the value has. */
function measure(value: Json, sizes: number[]): number {
  if (typeof value === 'string') sizes.push(sizeOf(value))
  if (Object(value) !== value) return 0
  return (
    1 + Object.values(value as JsonObject).reduce<number>((levels, item) => Math.max(levels, measure(item, sizes)), 0)
  )
}

/** The largest limit at which all texts, cut to it, fit together. */
function waterLevel(sizes: readonly number[], room: number): number {
  let left = room
  let count = sizes.length
  for (const size of sizes.toSorted((a, b) => a - b)) {
    // Only a text longer than its share is cut.
    const share = (left / count--) | 0
    if (size > share) return share - TEXT_MARK_BYTES
    left -= size
  }
  return Infinity
}

function write(payload: JsonObject, level: number, maxBytes: number) {
  let room = maxBytes
  let cutTexts = 0
  let cutLists = 0
  let text = ''

  function put(added: string, bytes = added.length): void {
    text += added
    room -= bytes
  }

  /** Writes a value, or the beginning of a list or object. False if it does not fit. */
  function value(source: Json, before: string): boolean {
    const isOpen = Object(source) === source
    const isCut = typeof source === 'string' && sizeOf(source) > level
    const itemText = before + (isCut ? cutText(source, level) : isOpen ? '' : JSON.stringify(source))
    const bytes = byteLength(itemText)
    if (room < bytes + (isOpen ? LIST_MARK_BYTES : 0)) return false
    if (isCut) cutTexts++
    put(itemText, bytes)
    if (isOpen) container(source as JsonObject)
    return true
  }

  function container(source: Json[] | JsonObject): void {
    const isList = Array.isArray(source)
    const entries = Object.entries(source)
    // Every open level reserves room for its end.
    put(isList ? '[' : '{', 1 + LIST_MARK_BYTES)
    for (const [index, [key, item]] of entries.entries()) {
      const before = index > 0 ? ',' : ''
      if (value(item, isList ? before : `${before}${JSON.stringify(key)}:`)) continue
      cutLists++
      // The end of the list may have been cut before.
      const [, more = 1] = /^\[cut: (\d+)/.exec(entries.at(-1)?.[isList ? 1 : 0] as string) ?? []
      put(`${before}"[cut: ${entries.length - index - 1 + +more} more]"${isList ? '' : ':true'}`)
      break
    }
    put(isList ? ']' : '}', 1 - LIST_MARK_BYTES)
  }

  container(payload)
  return { text, cutTexts, cutLists }
}

/** A very long text was cut before it was masked. */
const CUT_BEFORE = /… \[cut: (\d{1,9}) characters\]/

const DATA_URL = /^data:([\w.+/-]{3,99})[^,]{0,99};base64,([\w+/-]+)=*$/

/**
 * Cuts a text to at most `maxBytes` of JSON plus a mark. Keeps the beginning and the end, where a log has its error. A file is
 * left out, because half of it is useless.
 */
function cutText(text: string, maxBytes: number): string {
  const [, type, base64 = ''] = DATA_URL.exec(text) ?? []
  if (type) return JSON.stringify(`[cut: ${type}, ${(base64.length * 3) >> 2} bytes]`)
  let room = maxBytes
  let start = 0
  let end = text.length
  // Grow the part as long as it fits: each step reads only the characters that it would add, and each takes a byte or more.
  for (let step = 2 ** (31 - Math.clz32(room)); step >= 1; step /= 2) {
    const units = start + text.length - end + step
    const tail = (units / 3) | 0
    const bytes = sizeOf(text.slice(start, units - tail)) + sizeOf(text.slice(text.length - tail, end))
    if (bytes > room) continue
    room -= bytes
    start = units - tail
    end = text.length - tail
  }
  const removed = text.slice(start, end)
  const [mark = '', before = '0'] = CUT_BEFORE.exec(removed) ?? []
  const missing = removed.length - mark.length + +before
  // Half of a surrogate pair becomes the replacement character.
  return JSON.stringify(`${text.slice(0, start)}… [cut: ${missing} characters]${text.slice(end)}`.toWellFormed())
}
