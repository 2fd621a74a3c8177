/** Shortens a payload that is too large, in a marked way: its texts first, then whole members, the last ones first. */
import { isObject, type Json, type JsonObject } from './attributes.ts'

const TEXT_CHARS_MIN = 256

/** JSON of at most `maxBytes`. What was cut says so, and the payload has `tachoShortened` with its size before. */
export function shortenedJson(payload: JsonObject, maxBytes: number): string {
  const whole = JSON.stringify(payload)
  const originalBytes = Buffer.byteLength(whole)
  if (originalBytes <= maxBytes) return whole
  const mark = { tachoShortened: { originalBytes } }
  for (let chars = maxBytes / 2; chars >= TEXT_CHARS_MIN; chars /= 2) {
    const text = JSON.stringify({ ...(cutTexts(payload, Math.floor(chars)) as JsonObject), ...mark })
    if (Buffer.byteLength(text) <= maxBytes) return text
  }
  const members = Object.entries(cutTexts(payload, TEXT_CHARS_MIN) as JsonObject)
  for (let at = members.length - 1; at >= 0; at--) {
    const [name, value] = members[at] as [string, Json]
    const size = Array.isArray(value) ? value.length : isObject(value) ? Object.keys(value).length : 1
    members[at] = [name, `[cut: ${size} values]`]
    const text = JSON.stringify({ ...Object.fromEntries(members), ...mark })
    if (Buffer.byteLength(text) <= maxBytes) return text
  }
  return JSON.stringify(mark)
}

function cutTexts(value: Json, chars: number): Json {
  if (typeof value === 'string') {
    return value.length <= chars
      ? value
      : `${value.slice(0, chars).toWellFormed()}… [cut: ${value.length - chars} characters]`
  }
  if (Array.isArray(value)) return value.map((item) => cutTexts(item, chars))
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, cutTexts(member, chars)]))
}
