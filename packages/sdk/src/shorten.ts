/** Cuts long texts first, then the ends of long lists, and marks every cut. */
import type { Json, JsonObject } from './json.ts'
import { byteLength } from './text.ts'

/** Texts are cut to no less than this many bytes before lists are cut. */
const TEXT_BYTES_MIN = 256
/** Room for "… [cut: 1234567 characters]" in each cut text. */
const TEXT_MARK_BYTES = 48
/** Room for the marker of a list or object that ends early. */
const LIST_MARK_BYTES = 64
/** Room for the key that marks the payload as shortened. */
const SUMMARY_BYTES = 160

/**
 * At most `maxBytes`. In `tachoShortened`, `originalBytes` is the size before, `cutTexts` counts cut texts, and
 * `cutLists` lists and objects that end early.
 */
export function shorten(payload: JsonObject, originalBytes: number, maxBytes: number): string {
  const room = maxBytes - SUMMARY_BYTES
  const { sizes, levels } = measure(payload)
  const structure = originalBytes - sizes.reduce((sum, bytes) => sum + bytes, 0)
  const level = Math.max(TEXT_BYTES_MIN, waterLevel(sizes, room - structure - levels * LIST_MARK_BYTES))
  const { text, cutTexts, cutLists } = write(payload, level, room)
  const summary = JSON.stringify({ originalBytes, cutTexts, cutLists })
  return `${text.slice(0, -1)}${text === '{}' ? '' : ','}"tachoShortened":${summary}}`
}

/** JSON sizes of texts without quotes. */
function measure(payload: Json): { sizes: number[]; levels: number } {
  const sizes: number[] = []
  let levels = 0
  function visit(value: Json, level: number): void {
    if (typeof value === 'string') sizes.push(byteLength(JSON.stringify(value)) - 2)
    if (typeof value !== 'object' || value === null) return
    levels = Math.max(levels, level)
    for (const item of Object.values(value)) visit(item, level + 1)
  }
  visit(payload, 1)
  return { sizes, levels }
}

/** The largest limit at which all texts, cut to it, fit together. */
function waterLevel(sizes: readonly number[], room: number): number {
  const sorted = sizes.toSorted((a, b) => a - b)
  let left = room
  for (const [index, size] of sorted.entries()) {
    // Only a text longer than its share is cut.
    const share = Math.floor(left / (sorted.length - index))
    if (size > share) return share - TEXT_MARK_BYTES
    left -= size
  }
  return Infinity
}

function write(payload: JsonObject, level: number, maxBytes: number) {
  let room = maxBytes
  let cutTexts = 0
  let cutLists = 0
  const parts: string[] = []

  function put(text: string): void {
    parts.push(text)
    room -= byteLength(text)
  }

  /** Writes the beginning of a list or object that does not fit. */
  function value(source: Json, before: string): boolean {
    if (typeof source === 'object' && source !== null) {
      if (room < byteLength(before) + LIST_MARK_BYTES) return false
      put(before)
      container(source)
      return true
    }
    const isCut =
      typeof source === 'string' && source.length * 6 > level && byteLength(JSON.stringify(source)) - 2 > level
    const text = isCut ? cutText(source, level) : JSON.stringify(source)
    if (room < byteLength(before) + byteLength(text)) return false
    if (isCut) cutTexts++
    put(`${before}${text}`)
    return true
  }

  function container(source: Json[] | JsonObject): void {
    const isList = Array.isArray(source)
    const entries = Object.entries(source)
    put(isList ? '[' : '{')
    // Every open level reserves room for its end.
    room -= LIST_MARK_BYTES
    for (const [index, [key, item]] of entries.entries()) {
      const before = `${index > 0 ? ',' : ''}${isList ? '' : `${JSON.stringify(key)}:`}`
      if (value(item, before)) continue
      cutLists++
      room += LIST_MARK_BYTES
      const left = `"[cut: ${entries.length - index} more]"`
      put(`${index > 0 ? ',' : ''}${isList ? left : `${left}:true`}${isList ? ']' : '}'}`)
      return
    }
    room += LIST_MARK_BYTES
    put(isList ? ']' : '}')
  }

  container(payload)
  return { text: parts.join(''), cutTexts, cutLists }
}

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)(?:;[\w=.+-]+)*;base64,([\w+/-]+={0,2})$/

/** As JSON of at most `maxBytes` plus a mark: the beginning and the end, where a log has its error. Half of a file is worth nothing. */
function cutText(text: string, maxBytes: number): string {
  const [, type, base64 = ''] = DATA_URL.exec(text) ?? []
  if (type !== undefined)
    return JSON.stringify(`[cut: ${type}, ${Math.floor((base64.replace(/=+$/, '').length * 3) / 4)} bytes]`)
  const tailBytes = Math.floor(maxBytes / 3)
  const end = unitsWithin(text, maxBytes - tailBytes, (units) => text.codePointAt(units) as number)
  const left = text.length - end
  const tail = unitsWithin(text.slice(end), tailBytes, (units) => {
    const last = text.codePointAt(text.length - units - 1) as number
    const isLow = last >= 0xdc00 && last <= 0xdfff && units + 1 < left
    return isLow ? (text.codePointAt(text.length - units - 2) as number) : last
  })
  const missing = left - tail
  if (missing <= 0) return JSON.stringify(text)
  return JSON.stringify(`${text.slice(0, end)}… [cut: ${missing} characters]${text.slice(text.length - tail)}`)
}

function unitsWithin(text: string, maxBytes: number, codeAt: (units: number) => number): number {
  let [bytes, units] = [0, 0]
  while (units < text.length) {
    const code = codeAt(units)
    bytes += jsonBytes(code)
    if (bytes > maxBytes) break
    units += code > 0xffff ? 2 : 1
  }
  return units
}

/** Inside a JSON text. Payloads have no half surrogate pairs. */
function jsonBytes(code: number): number {
  if (code === 0x22 || code === 0x5c) return 2
  if (code < 0x20) return [8, 9, 10, 12, 13].includes(code) ? 2 : 6
  if (code < 0x80) return 1
  if (code < 0x800) return 2
  return code > 0xffff ? 4 : 3
}
