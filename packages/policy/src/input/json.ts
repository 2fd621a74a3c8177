import type { Value } from '../evaluation/value.ts'

/** A value that is not plain JSON. The message contains its path; `reason` does not, because keys can be facts. */
export class NotPlainJson extends TypeError {
  readonly reason: string
  constructor(path: readonly (string | number)[], reason: string) {
    const place = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('')
    super(`input${place} ${reason}`)
    this.name = 'NotPlainJson'
    this.reason = reason
  }
}

/**
 * Copies plain JSON: null, booleans, finite numbers, texts, arrays without holes, and plain objects. Objects become maps,
 * so no host object is included. Undefined properties are left out, as in JSON.
 * @throws NotPlainJson for anything else and past the limits, including cycles; also rethrows errors of getters.
 */
export function copyJson(source: unknown, bounds: { readonly values: number; readonly levels: number }): Value {
  const path: (string | number)[] = []
  let values = 0

  function copy(value: unknown): Value {
    if (++values > bounds.values) throw new NotPlainJson([], `has more than ${bounds.values} values`)
    switch (typeof value) {
      case 'string':
      case 'boolean':
        return value
      case 'number':
        if (!Number.isFinite(value)) throw new NotPlainJson(path, `is ${value}, which JSON does not have`)
        return value
      case 'object':
        if (value === null) return null
        if (path.length >= bounds.levels) throw new NotPlainJson([], `is nested more than ${bounds.levels} levels deep`)
        return Array.isArray(value) ? copyList(value) : copyObject(value)
      default:
        throw new NotPlainJson(path, `is ${typeof value}, not plain JSON`)
    }
  }

  function copyList(list: readonly unknown[]): Value {
    refuseToJson(list)
    const copies: Value[] = []
    // Loop by index, so that a hole reads as undefined and is rejected.
    for (let index = 0; index < list.length; index++) {
      path.push(index)
      copies.push(copy(list[index]))
      path.pop()
    }
    return copies
  }

  function copyObject(object: object): Value {
    if (!isPlain(object)) throw new NotPlainJson(path, `is a ${classOf(object)}, not plain JSON`)
    const copies = new Map<string, Value>()
    for (const key of Object.keys(object)) {
      const value: unknown = (object as Record<string, unknown>)[key]
      if (value === undefined) continue
      path.push(key)
      copies.set(key, copy(value))
      path.pop()
    }
    refuseToJson(object)
    return copies
  }

  /** Even an inherited or non-enumerable toJSON would replace the value in JSON. */
  function refuseToJson(value: object): void {
    if (typeof (value as { toJSON?: unknown }).toJSON === 'function')
      throw new NotPlainJson(path, 'has a method toJSON')
  }

  return copy(source)
}

const OBJECT_NAMES = new Set(Object.getOwnPropertyNames(Object.prototype))

/**
 * An object without a prototype, or with the `Object.prototype` of any realm. Other prototypes hold fields that a tool reads
 * and a copy loses.
 */
function isPlain(object: object): boolean {
  const prototype = Object.getPrototypeOf(object) as object | null
  if (prototype === null || prototype === Object.prototype) return true
  const isTop = Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'hasOwnProperty')
  return isTop && Object.getOwnPropertyNames(prototype).every((name) => OBJECT_NAMES.has(name))
}

function classOf(object: object): string {
  const { constructor } = object as { constructor?: unknown }
  return typeof constructor === 'function' && constructor.name !== '' ? constructor.name : 'host object'
}
