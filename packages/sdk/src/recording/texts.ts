/**
 * Writes and searches each long text of payloads only once, because a conversation repeats its messages with every call. A
 * payload becomes a short outline with a mark in place of each long text. Only the outline is searched each time. Only in
 * Node.
 */
import type { Diagnostics } from '../delivery/diagnostics.ts'
import type { JsonObject, JsonText } from './json.ts'
import type { Settings } from '../options.ts'
import { shorten, withoutRests } from './shorten.ts'
import { byteLength } from './text.ts'
import { createWriting, type Writing } from './writing.ts'

/** Maximum characters of the newer texts. Beyond it, they become the older ones, and the previous older ones are removed. */
const KNOWN_CHARS = 524_288
/** Longer texts are not cached: most of them come once. */
const KNOWN_TEXT_CHARS = 65_536
/**
 * Characters of both ends of a text in its key. V8 copies parts this short. A longer part would keep the whole text in
 * memory.
 */
const END_CHARS = 12
/** A shorter text is written and searched with its payload. */
const LONG_CHARS = 256
/** A smaller payload is faster to write in one piece. */
const WORTH_BYTES = 4_096
/** Longer lists are skipped: their texts are too short. */
const LIST_MAX = 2_000
/** Pieces of a smaller payload are joined: they cost the garbage collector more than a copy. */
const JOINED_BYTES = 32_768
/** Stands for a long text. No mask matches it. If a payload of the host contains it too, the whole payload is masked. */
const MARK = '\x7f\x7f'
const MARK_JSON = JSON.stringify(MARK)

type Holder = Record<string, unknown>
type Place = readonly [holder: Holder, key: string, text: string]

/** Where the long texts of a plain value are, in the order of its JSON text. */
function placesOf(value: unknown, places: Place[] = []): Place[] {
  if (Object(value) !== value || (value as unknown[]).length > LIST_MAX) return places
  const holder = value as Holder
  for (const key of Object.keys(holder)) {
    const item = holder[key]
    if (typeof item !== 'string') placesOf(item, places)
    else if (item.length >= LONG_CHARS) places.push([holder, key, item])
  }
  return places
}

type Known = readonly [text: string, json: string]

/** A writing with a cache of texts. It records the same as one without. */
export function createRememberingWriting(settings: Pick<Settings, 'masking'>, diagnostics: Diagnostics): Writing {
  const writing = createWriting(settings, diagnostics)
  const { touches = () => true } = writing
  // With a pattern, a name or a function of the host, every text may have to be masked.
  if (touches('')) return writing
  // Texts in which there is nothing to mask. A text that comes again moves to the new ones, so it is not forgotten.
  let newTexts = new Map<string, Known>()
  let olderTexts = newTexts
  let chars = 0

  const isTouched = (json: string, searched = json): boolean => json.includes('\\ud') || touches(searched)

  /** Undefined if something may have to be masked. */
  function cleanJson(text: string): string | undefined {
    const key = `${text.length}${text.slice(0, END_CHARS)}${text.slice(-END_CHARS)}`
    const [newText, newJson] = newTexts.get(key) ?? []
    if (newText === text) return newJson
    const [olderText, olderJson] = olderTexts.get(key) ?? []
    let json = olderText === text ? olderJson : undefined
    if (!json) {
      // What follows the text in a payload is searched too: a name may be the whole text.
      const list = JSON.stringify([text, null])
      // If the JSON has escapes, search the text itself.
      if (isTouched(list, list.includes('\\u00') ? text : list)) return undefined
      json = list.slice(1, -',null]'.length)
    }
    if (text.length > KNOWN_TEXT_CHARS) return json
    chars += text.length
    if (chars > KNOWN_CHARS) {
      olderTexts = newTexts
      newTexts = new Map()
      chars = text.length
    }
    // A copy: the host's text may be a part of a longer one, which would stay too.
    newTexts.set(key, [` ${text}`.slice(1), json])
    return json
  }

  /** Undefined if something may have to be masked. */
  function cleanPayload(source: JsonText, maxBytes: number): readonly string[] | undefined {
    const { isCut, bytes: about = 0 } = source
    const places = about < WORTH_BYTES ? [] : placesOf(source.value)
    if (places.length === 0) return undefined
    for (const [holder, key] of places) holder[key] = MARK
    const outline = source.text
    for (const [holder, key, text] of places) holder[key] = text
    const between = outline.split(MARK_JSON)
    if (between.length !== places.length + 1 || isTouched(outline)) return undefined
    let pieces: string[] = []
    for (const [, , text] of places) {
      const json = cleanJson(text)
      if (!json) return undefined
      pieces.push(between[pieces.length / 2] as string, json)
    }
    pieces.push(between.at(-1) as string)
    if (isCut) pieces = pieces.map(withoutRests)
    const bytes = pieces.reduce((sum, piece) => sum + byteLength(piece), 0)
    if (!isCut && bytes <= maxBytes) return bytes < JOINED_BYTES ? [pieces.join('')] : pieces
    return [shorten(JSON.parse(pieces.join('')) as JsonObject, bytes, maxBytes, diagnostics)]
  }

  return {
    ...writing,
    payload: (source, maxBytes) => cleanPayload(source, maxBytes) ?? writing.payload(source, maxBytes),
  }
}
