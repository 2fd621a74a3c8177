/** Compares inputs that have no hash because they are not plain JSON. */

const objects = new WeakMap<object, number>()
let count = 0

/**
 * Equal for equal inputs. Reads every own property. An object or function that hides its content counts by its
 * identity. Null if the input cannot be read.
 */
export function snapshot(input: unknown): string | null {
  const seen = new Map<object, number>()
  const parts: string[] = []

  function add(value: unknown): void {
    if (typeof value === 'string') parts.push(JSON.stringify(value))
    else if (typeof value === 'symbol') throw new TypeError('A symbol cannot be compared.')
    else if (typeof value === 'function' || (typeof value === 'object' && value !== null)) addObject(value)
    else parts.push(typeof value, Object.is(value, -0) ? '-0' : String(value))
  }

  function addObject(value: object): void {
    const known = seen.get(value)
    if (known !== undefined) return void parts.push('seen', `${known}`)
    seen.set(value, seen.size)
    if (ArrayBuffer.isView(value)) {
      parts.push('bytes', new Uint8Array(value.buffer, value.byteOffset, value.byteLength).join())
      return
    }
    if (Array.isArray(value)) parts.push('list', `${value.length}`)
    else if (!isPlain(value)) addHidden(value)
    const keys = Object.keys(value)
    parts.push('fields', `${keys.length}`)
    // In a dense list without named properties, an item's index is its key.
    const isDense = Array.isArray(value) && keys.length === value.length && keys.at(-1) === `${value.length - 1}`
    for (const key of keys) {
      if (!isDense) parts.push(JSON.stringify(key))
      add((value as Record<string, unknown>)[key])
    }
  }

  /** Adds state that the value's own properties do not show. */
  function addHidden(value: object): void {
    if (value instanceof Map || value instanceof Set) {
      parts.push('items', `${value.size}`)
      for (const item of value) add(item)
    } else if (value instanceof Date) parts.push('date', `${value.getTime()}`)
    else parts.push('object', `${identityOf(value)}`)
  }

  try {
    add(input)
    return parts.join()
  } catch {
    return null
  }
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}

function identityOf(value: object): number {
  const known = objects.get(value) ?? ++count
  objects.set(value, known)
  return known
}
