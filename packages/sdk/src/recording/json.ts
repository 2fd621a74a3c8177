import { byteLength, shortenedAtWord, shortenedInside } from './text.ts'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

/** `isCut`: only the beginning of the value was read. */
export interface JsonText {
  /** Made when it is read. */
  readonly text: string
  readonly isCut?: boolean | undefined
  /** The value that the text encodes. */
  readonly value?: unknown
  /** About the size of the text. */
  readonly bytes?: number
}

/** Bytes of keys, signs, numbers and short texts that are read: nothing shortens them, so more cannot be part of a payload. */
const STRUCTURE_MAX = 262_144
/** Characters of texts that are read: eight times what the interface accepts. */
const READ_MAX = 2_097_152
/** Characters of one text that are masked: a quarter more than the interface accepts. More would hold up the host. */
const MASKED_MAX = 327_680
/** Characters of all texts that are masked completely. Of later texts, only the beginnings are. The newest messages come last. */
const MASKED_FULLY = 524_288
/** Most fields that can fit in a payload: each takes six bytes, such as `"a":1,`. */
const FIELDS_MAX = 43_690
/** Longer texts are not read at all: reading even the beginning may first join their parts in memory. */
const TEXT_MAX = 67_108_864
const TOO_LARGE = 'too large'
/**
 * Replaces the ellipsis of a cut until the text is masked. With an ellipsis, V8 would store each character in two bytes, and
 * all later steps would take three times as long.
 */
export const CUT_MARK = '\x7f'

/** The object that was too large for a plain copy, and its keys: listing them takes longest, and once is enough. */
let large: object | undefined
let largeKeys: string[] = []

interface Copied {
  readonly value: unknown
  /** About the size of its JSON text in UTF-8. */
  readonly bytes: number
  readonly isCut?: boolean
}

export interface Snapshot extends JsonText {
  readonly bytes: number
}

/**
 * Never throws. Texts are not copied, because they never change. Values that JSON.stringify refuses or that would block
 * the host (cycles, BigInt, getters that throw, extreme depth and size, an own toJSON) are written at once, with a mark
 * in place of each lost value. The text of nothing is `{}`.
 */
export function snapshotOf(payload: unknown, maxLevels: number): Snapshot {
  const plain = readSafely(() => plainCopy(payload, maxLevels), undefined)
  const { value, bytes, isCut } = plain ?? copied(payload, maxLevels)
  large = undefined
  largeKeys = []
  return {
    value,
    bytes,
    isCut,
    get text() {
      const text = JSON.stringify(value)
      return text.startsWith('{') ? text : `{"value":${text}}`
    },
  }
}

/** A copy that JSON.stringify writes like the original. @throws if JSON.stringify must not read the value. */
function plainCopy(payload: unknown, maxLevels: number): Copied {
  let structure = 0
  let read = 0
  let chars = 0
  let bytes = 0
  const spend = (size: number): void => {
    if ((structure += size) > STRUCTURE_MAX) throw TOO_LARGE
  }

  function copy(value: unknown, levels: number): unknown {
    spend(leastBytes(value))
    if (typeof value === 'string') {
      if ((read += value.length) > READ_MAX || (chars += maskedChars(value)) > MASKED_MAX) throw TOO_LARGE
      bytes += byteLength(value)
      return value
    }
    if (typeof value === 'bigint' || levels === 0) throw TOO_LARGE
    if (typeof value === 'number') return numberOf(value)
    if (typeof value !== 'object' || value === null) return typeof value === 'function' ? undefined : value
    if (Array.isArray(value)) {
      if (value.length > STRUCTURE_MAX) throw TOO_LARGE
      return Array.from(value, (item) => copy(item, levels - 1))
    }
    // JSON.stringify would lose an error and write each byte of a buffer as a number.
    if (value instanceof Error || ArrayBuffer.isView(value)) throw TOO_LARGE
    if (typeof (value as { toJSON?: unknown }).toJSON === 'function') {
      if (!(value instanceof Date)) throw TOO_LARGE
      spend(-2)
      return copy(value.toJSON(), levels)
    }
    if (value instanceof String || value instanceof Number || value instanceof Boolean) return value.valueOf()
    if (isHidden(value)) throw TOO_LARGE
    const fields: Record<string, unknown> = {}
    const keys = Object.keys(value)
    if (keys.length > FIELDS_MAX) {
      large = value
      largeKeys = keys
      throw TOO_LARGE
    }
    for (const key of keys) {
      spend(key.length + 3)
      if (key === '__proto__') throw TOO_LARGE
      fields[key] = copy((value as Record<string, unknown>)[key], levels - 1)
    }
    return fields
  }
  const value = copy(payload, maxLevels)
  if (value === undefined) throw TOO_LARGE
  return { value, bytes: bytes + structure }
}

/** The least size as JSON, after masking and shortening. Texts of up to 256 bytes are not shortened. */
function leastBytes(value: unknown): number {
  if (typeof value === 'string') return 3 + Math.min(maskedChars(value), 256)
  if (typeof value === 'number') return String(value).length + 1
  return typeof value === 'object' && value ? 2 : 5
}

/** A file in base64 is recorded whole, or as its type and size. */
const maskedChars = (text: string): number => (text.startsWith('data:') && text.length <= READ_MAX ? 0 : text.length)

/** JSON has no NaN and no Infinity. */
const numberOf = (value: number) => (Number.isFinite(value) ? value : `[${value}]`)

/** JSON would show nothing of a Map, Headers or a Response. An object of the host's own class is not hidden. */
export function isHidden(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null || Array.isArray(value)) return false
  const kind = kindOf(value)
  if (kind === 'Error') return true
  return !/^(?:Object|String|Number|Boolean)$/.test(kind) && Object.keys(value).length === 0
}

const kindOf = (value: object): string => Object.prototype.toString.call(value).slice(8, -1)

/** A mark in place of the content of an object that JSON cannot express. */
export function markOf(value: object): string {
  const kind = kindOf(value)
  const { size, byteLength: bytes = size } = value as { size?: unknown; byteLength?: unknown }
  if (/^(?:Blob|File|DataView|.*Array(?:Buffer)?)$/.test(kind)) return `[binary: ${String(bytes)} bytes]`
  return typeof size === 'number' ? `[${kind}: ${size} entries]` : `[${kind}]`
}

/** Leaves out what JSON cannot express, and limits depth, values and characters. */
function copied(payload: unknown, maxLevels: number): Copied {
  const ancestors = new Set<object>()
  let structure = 0
  let chars = 0
  let bytes = 0

  function copyValue(source: unknown): Json | undefined {
    structure += leastBytes(source)
    switch (typeof source) {
      case 'string':
        return copyText(source)
      case 'boolean':
        return source
      case 'number':
        return numberOf(source)
      case 'bigint':
        return source.toString()
      case 'object':
        return source === null ? null : copyObject(source)
      default:
        return undefined
    }
  }

  function copyText(text: string): string {
    const masked = maskedChars(text)
    // Short texts and beginnings stay beyond the limits too, as names do: STRUCTURE_MAX bounds them.
    const room = masked === 0 ? READ_MAX : text.length > TEXT_MAX ? 0 : chars > MASKED_FULLY ? 200 : MASKED_MAX
    chars += masked
    // Keep both ends. Shortening cuts more of the middle, so the ends of this cut are far from what is sent: the mask does not
    // recognise half a credential.
    const copy = (room === MASKED_MAX ? shortenedInside : shortenedAtWord)(text, room, CUT_MARK)
    bytes += byteLength(copy)
    return copy
  }

  function copyObject(source: object): Json | undefined {
    if (ancestors.has(source)) return '[circular]'
    if (ancestors.size >= maxLevels) return '[cut: nested too deeply]'
    ancestors.add(source)
    try {
      if (isError(source)) return copyFields({ name: nameOf(source), message: source.message })
      const { toJSON } = source as { toJSON?: unknown }
      const isShown = typeof toJSON !== 'function' && !ArrayBuffer.isView(source) && !isHidden(source)
      if (isShown) return Array.isArray(source) ? copyList(source) : copyFields(source)
      structure -= 2
      return copyValue(typeof toJSON === 'function' ? (toJSON as () => unknown).call(source) : markOf(source))
    } catch {
      return '[unreadable]'
    } finally {
      ancestors.delete(source)
    }
  }

  function copyList(source: readonly unknown[]): Json {
    const list: Json[] = []
    let index = 0
    for (; index < source.length && structure < STRUCTURE_MAX; index++) list.push(copyValue(source[index]) ?? null)
    if (index < source.length) list.push(`[cut: ${source.length - index} more]`)
    return list
  }

  function copyFields(source: object): Json {
    const fields: [string, Json][] = []
    const keys = source === large ? largeKeys : Object.keys(source)
    for (const [index, key] of keys.entries()) {
      if ((structure += key.length + 3) >= STRUCTURE_MAX) {
        fields.push([`[cut: ${keys.length - index} more]`, true])
        break
      }
      const field = readSafely(() => copyValue((source as Record<string, unknown>)[key]), '[unreadable]')
      if (field !== undefined) fields.push([key, field])
    }
    return Object.fromEntries(fields)
  }

  const value = copyValue(payload) ?? {}
  return { value, bytes: structure + bytes, isCut: structure >= STRUCTURE_MAX || chars > MASKED_MAX }
}

/** The fields of an object: at most one more than can fit in a payload. */
export function fieldsOf(source: unknown): [string, unknown][] {
  const fields = Object(source) as Record<string, unknown>
  return Object.keys(fields)
    .slice(0, FIELDS_MAX + 1)
    .map((key) => [key, fields[key]])
}

/** Later sources win. */
export function joined(...sources: readonly unknown[]): Record<string, unknown> {
  return Object.fromEntries(sources.flatMap(fieldsOf))
}

/** Whether a value is an Error, also of another realm, such as that of a test runner. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || /^(?:Error|DOMException)$/.test(kindOf(value as object))
}

export function errorText(error: unknown): string {
  return readSafely(() => (isError(error) ? `${nameOf(error)}: ${error.message}` : String(error)), 'unreadable error')
}

/**
 * Error classes of OpenAI, Anthropic and most hosts keep a built-in `name`. Then the name of the class counts, unless a bundler
 * shortened it.
 */
export function nameOf(error: unknown): string {
  return readSafely(() => {
    const { name, constructor } = error as Error
    return name in globalThis && constructor.name[3] ? constructor.name : String(name)
  }, 'unreadable error')
}

/** Getters and proxies of the host can throw. */
export function readSafely<T>(read: () => T, otherwise: T): T {
  try {
    return read()
  } catch {
    return otherwise
  }
}
