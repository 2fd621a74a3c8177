import { hash } from 'node:crypto'
import { isObject, type Json, type JsonObject } from './attributes.ts'

/** Tried in turn before whole members are cut. Few, because each costs a walk. The first leaves one long text almost whole. */
const TEXT_CHARS = [200_000, 65_536, 16_384, 1_024, 256]

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
  if (typeof value === 'string') return cutText(value, chars)
  if (Array.isArray(value)) return value.map((item) => cutTexts(item, chars))
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, cutTexts(member, chars)]))
}

/** A data URL, or the base64 of a PNG, JPEG, GIF, WebP, WAV, PDF or MP3 file. */
const FILE =
  /^(?:data:([\w.+-]+\/[\w.+-]+)(?:;[\w=.+-]+)*;base64,|(?=iVBORw0KGgo|\/9j\/|R0lGOD|UklGR|JVBERi0|SUQz))([\w+/-]+={0,2})$/

/** Keeps the beginning and the end, where a log has its error. Half of a file is worth nothing: it becomes its type, size and hash. */
function cutText(text: string, chars: number): string {
  if (text.length <= chars) return text
  const file = FILE.exec(text)
  if (file) {
    const bytes = Buffer.from(file[2] ?? '', 'base64')
    return `[${file[1] ?? 'base64'}, ${bytes.length} bytes, sha256 ${hash('sha256', bytes)}]`
  }
  const head = Math.ceil((chars * 2) / 3)
  const [start, end] = [text.slice(0, head), text.slice(text.length - (chars - head))]
  return `${start.toWellFormed()}… [cut: ${text.length - chars} characters]${end.toWellFormed()}`
}
