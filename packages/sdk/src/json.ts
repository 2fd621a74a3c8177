/** Makes plain JSON from any value a host passes. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

/** Limits of the slow path, which copies values that JSON.stringify refuses. */
const COPIED_VALUES = 50_000

/**
 * The JSON text of an object; `{}` if it has none. Never throws. Values that JSON.stringify refuses (cycles, BigInt,
 * getters and toJSON that throw, extreme depth) are copied first, with a marker in place of each lost value.
 */
export function jsonText(payload: unknown, maxLevels: number): string {
  let text: string | undefined
  try {
    text = JSON.stringify(payload) as string | undefined
  } catch {
    text = JSON.stringify(copy(payload, maxLevels))
  }
  if (text === undefined) return '{}'
  return text.startsWith('{') ? text : `{"value":${text}}`
}

/** Whether a JSON text is nested deeper than `maxLevels`. */
export function isDeeper(text: string, maxLevels: number): boolean {
  // Most texts have fewer brackets in total.
  let open = 0
  for (const bracket of ['{', '[']) {
    for (let at = text.indexOf(bracket); at !== -1 && open <= maxLevels; at = text.indexOf(bracket, at + 1)) open++
  }
  if (open <= maxLevels) return false
  let levels = 0
  let inText = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (inText && code === BACKSLASH) at++
    else if (code === QUOTE) inText = !inText
    else if (!inText && (code === OPEN_BRACE || code === OPEN_BRACKET) && ++levels > maxLevels) return true
    else if (!inText && (code === CLOSE_BRACE || code === CLOSE_BRACKET)) levels--
  }
  return false
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** A copy without what JSON cannot express, limited in depth. */
export function copy(value: unknown, maxLevels: number): Json {
  const ancestors = new Set<object>()
  let values = 0

  function copyValue(source: unknown): Json | undefined {
    if (++values > COPIED_VALUES) return '[cut: too many values]'
    switch (typeof source) {
      case 'string':
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

  function copyObject(source: object): Json | undefined {
    if (ancestors.has(source)) return '[circular]'
    if (ancestors.size >= maxLevels) return '[cut: nested too deeply]'
    ancestors.add(source)
    try {
      if (source instanceof Error) return { name: source.name, message: source.message }
      const { toJSON } = source as { toJSON?: unknown }
      if (typeof toJSON === 'function') return copyValue((toJSON as () => unknown).call(source))
      if (Array.isArray(source)) {
        const list: Json[] = []
        for (const item of source as unknown[]) {
          if (values > COPIED_VALUES) break
          list.push(copyValue(item) ?? null)
        }
        return list
      }
      return copyFields(source)
    } catch {
      return '[unreadable]'
    } finally {
      ancestors.delete(source)
    }
  }

  function copyFields(source: object): Json {
    const fields: [string, Json][] = []
    for (const key of Object.keys(source)) {
      if (values > COPIED_VALUES) break
      let field: Json | undefined
      try {
        field = copyValue((source as Record<string, unknown>)[key])
      } catch {
        field = '[unreadable]'
      }
      if (field !== undefined) fields.push([key, field])
    }
    return Object.fromEntries(fields)
  }

  return copyValue(value) ?? null
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
