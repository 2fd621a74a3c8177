/** Makes plain JSON from any value a host passes. */
import { shortened } from './text.ts'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

/** `isCut`: only the beginning of the value was read. */
interface JsonText {
  readonly text: string
  readonly isCut: boolean
}

/** Limits of the slow path, which copies values that JSON.stringify must not read. */
const COPIED_VALUES = 131_072
/** Characters and values of a payload that are read: eight times what the interface accepts. */
const READ_MAX = 2_097_152
/** Most fields that can fit in a payload: each takes six bytes, such as `"a":1,`. */
const FIELDS_MAX = 43_690
/** Longer texts are not read at all: reading even the beginning may first join their parts in memory. */
const TEXT_MAX = 67_108_864

/**
 * The JSON text of an object; `{}` if it has none. Never throws. Values that JSON.stringify refuses or that would block the
 * host (cycles, BigInt, getters that throw, extreme depth and size, an own toJSON) are copied first, within bounds and
 * with a mark in place of each lost value.
 */
export function jsonText(payload: unknown, maxLevels: number): JsonText {
  const { text, isCut } = stringified(payload, maxLevels) ?? copied(payload, maxLevels)
  return { text: text.startsWith('{') ? text : `{"value":${text}}`, isCut }
}

function stringified(payload: unknown, maxLevels: number): JsonText | undefined {
  const text = readSafely(
    () => (measure(payload, maxLevels, READ_MAX) < 0 ? undefined : (JSON.stringify(payload) as string | undefined)),
    undefined,
  )
  return text === undefined ? undefined : { text, isCut: false }
}

/** What is left of `room` after the characters and values of `value`; negative if JSON.stringify must not read it. */
function measure(value: unknown, levels: number, room: number): number {
  if (typeof value === 'string') return room - value.length
  if (typeof value !== 'object' || value === null) return typeof value === 'bigint' ? -1 : room - 4
  if (levels === 0) return -1
  let left = room - 4
  if (Array.isArray(value)) {
    if (value.length > left) return -1
    for (let index = 0; index < value.length && left >= 0; index++) left = measure(value[index], levels - 1, left)
    return left
  }
  // JSON.stringify would lose an error and write each byte of a buffer as a number.
  if (value instanceof Error || ArrayBuffer.isView(value)) return -1
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return value instanceof Date ? left : -1
  for (const key in value) {
    left = measure((value as Record<string, unknown>)[key], levels - 1, left - key.length - READ_MAX / FIELDS_MAX)
    if (left < 0) return left
  }
  return left
}

/** The text of a copy without what JSON cannot express, limited in depth, values and characters. */
function copied(value: unknown, maxLevels: number): JsonText {
  const ancestors = new Set<object>()
  let values = 0
  let chars = 0

  function copyValue(source: unknown): Json | undefined {
    values++
    switch (typeof source) {
      case 'string':
        return copyText(source)
      case 'boolean':
        return source
      case 'number':
        return Number.isFinite(source) ? source : null
      case 'bigint':
        return source.toString()
      case 'object':
        return source === null ? null : copyObject(source)
      default:
        return undefined
    }
  }

  function copyText(text: string): string {
    const room = text.length > TEXT_MAX ? 0 : Math.max(0, READ_MAX - chars)
    chars += text.length
    return shortened(text, room)
  }

  function copyObject(source: object): Json | undefined {
    if (ancestors.has(source)) return '[circular]'
    if (ancestors.size >= maxLevels) return '[cut: nested too deeply]'
    ancestors.add(source)
    try {
      if (source instanceof Error) return { name: copyText(source.name), message: copyText(source.message) }
      if (ArrayBuffer.isView(source)) return `[binary: ${source.byteLength} bytes]`
      const { toJSON } = source as { toJSON?: unknown }
      if (typeof toJSON === 'function') return copyValue((toJSON as () => unknown).call(source))
      return Array.isArray(source) ? copyList(source) : copyFields(source)
    } catch {
      return '[unreadable]'
    } finally {
      ancestors.delete(source)
    }
  }

  function copyList(source: readonly unknown[]): Json {
    const list: Json[] = []
    let index = 0
    for (; index < source.length && values < COPIED_VALUES; index++) list.push(copyValue(source[index]) ?? null)
    if (index < source.length) list.push(`[cut: ${source.length - index} more]`)
    return list
  }

  function copyFields(source: object): Json {
    const fields: [string, Json][] = []
    const keys = Object.keys(source)
    for (const [index, key] of keys.entries()) {
      // A field counts as three values, so that at most FIELDS_MAX are read.
      values += 2
      if (values >= COPIED_VALUES) {
        fields.push([`[cut: ${keys.length - index} more]`, true])
        break
      }
      const name = copyText(key)
      const field = readSafely(() => copyValue((source as Record<string, unknown>)[key]), '[unreadable]')
      if (field !== undefined) fields.push([name, field])
    }
    return Object.fromEntries(fields)
  }

  const text = JSON.stringify(copyValue(value) ?? {})
  return { text, isCut: values >= COPIED_VALUES || chars > READ_MAX }
}

/** The fields of a payload, at most one more than can fit. */
export function fieldsOf(source: unknown): [string, unknown][] {
  const fields = Object(source) as Record<string, unknown>
  return Object.keys(fields)
    .slice(0, FIELDS_MAX + 1)
    .map((key) => [key, fields[key]])
}

/** These fields in one object; later ones win. */
export function joined(...sources: readonly unknown[]): Record<string, unknown> {
  return Object.fromEntries(sources.flatMap(fieldsOf))
}

/** Any thrown value as one text. */
export function errorText(error: unknown): string {
  return readSafely(
    () => (error instanceof Error ? `${error.name}: ${error.message}` : String(error)),
    'unreadable error',
  )
}

/** What `read` returns, or `otherwise` if it throws: a getter or proxy of the host can. */
export function readSafely<T>(read: () => T, otherwise: T): T {
  try {
    return read()
  } catch {
    return otherwise
  }
}
