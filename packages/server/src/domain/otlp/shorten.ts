import { isObject, type Json, type JsonObject } from './attributes.ts'

/** Tried in turn before whole members are cut. Few, because each costs a walk. */
const TEXT_CHARS = [16_384, 1_024, 256]

export function shortenedJson(payload: JsonObject, maxBytes: number): string {
  const whole = JSON.stringify(payload)
  const originalBytes = Buffer.byteLength(whole)
  if (originalBytes <= maxBytes) return whole
  const mark = { tachoShortened: { originalBytes } }
  let shorter = payload
  for (const chars of TEXT_CHARS) {
    shorter = cutTexts(payload, chars) as JsonObject
    const text = JSON.stringify({ ...shorter, ...mark })
    if (Buffer.byteLength(text) <= maxBytes) return text
  }
  return JSON.stringify({ ...withoutLastMembers(shorter, maxBytes - Buffer.byteLength(JSON.stringify(mark))), ...mark })
}

function withoutLastMembers(payload: JsonObject, maxBytes: number): JsonObject {
  const members = Object.entries(payload)
  let room = maxBytes - members.length * MEMBER_MARK_BYTES
  return Object.fromEntries(
    members.map(([name, value]): [string, Json] => {
      const bytes = Buffer.byteLength(JSON.stringify(value))
      if (bytes <= room) {
        room -= bytes
        return [name, value]
      }
      const size = Array.isArray(value) ? value.length : isObject(value) ? Object.keys(value).length : 1
      return [name, `[cut: ${size} values]`]
    }),
  )
}

/** For the name, which the mapping chooses, and the sentence. */
const MEMBER_MARK_BYTES = 64

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
