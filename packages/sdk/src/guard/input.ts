/** The input of a guarded call: how it is read, and whether it changed. */

/** The default of `input`: the only argument if it is an object. */
export function inputOfArguments(...args: unknown[]): unknown {
  const [first] = args
  const isObject = typeof first === 'object' && first !== null && !Array.isArray(first)
  if (args.length === 1 && isObject) return first
  return args.length === 0 ? {} : { args }
}

const objects = new WeakMap<object, number>()
let count = 0

/**
 * A text that is equal for equal inputs, even if they are not plain JSON and have no hash. Reads every own property.
 * An object or function that hides its content counts by its identity. Null if the input cannot be read.
 */
export function snapshot(input: unknown): string | null {
  const seen = new Map<object, number>()

  function taken(value: unknown): unknown {
    if (typeof value === 'string') return value
    if (typeof value === 'symbol') throw new TypeError('A symbol cannot be compared.')
    if (typeof value !== 'function' && (typeof value !== 'object' || value === null)) {
      return [typeof value, Object.is(value, -0) ? '-0' : String(value)]
    }
    const known = seen.get(value)
    if (known !== undefined) return ['seen', known]
    seen.set(value, seen.size)
    if (ArrayBuffer.isView(value)) {
      return ['bytes', new Uint8Array(value.buffer, value.byteOffset, value.byteLength).join()]
    }
    const fields = Object.entries(value).map(([key, item]) => [key, taken(item)])
    if (Array.isArray(value) || isPlain(value)) return [Array.isArray(value) ? 'list' : 'fields', fields]
    if (value instanceof Date) return ['date', value.getTime(), fields]
    if (value instanceof Map || value instanceof Set) return ['items', [...value].map(taken), fields]
    return ['object', identityOf(value), fields]
  }

  try {
    return JSON.stringify(taken(input))
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
