/** Copies values of the host, so that later changes by the host have no effect. */
import { readSafely } from '../recording/json.ts'
import { LIMITS } from '../limits.ts'

/** Characters of all texts and keys, and 256 for each value. */
const ROOM = 16_777_216
const VALUE = 256

/** Copies of objects with getters. Policies do not judge them: a getter may return something else the next time. */
const gotten = ((globalThis as Record<symbol, unknown>)[Symbol.for('tacho.gotten')] ??=
  new WeakSet()) as WeakSet<object>

/**
 * Copies plain JSON and Dates; returns any other value itself. Getters are read once, so that the record has what the tool
 * gets.
 */
export function detached(value: unknown): unknown {
  return readSafely(() => copyPlain(value), value)
}

/**
 * Copies values that JSON can hold without changing them, and Dates. A copy of an object with a getter cannot be copied again.
 * @param onDate makes the copy of a Date, by default a Date. @throws a text that says why the value has no copy.
 */
export function copyPlain(source: unknown, onDate = (date: Date): unknown => new Date(date)): unknown {
  let room = ROOM
  const spend = (text: string): string => {
    if ((room -= text.length) < 0) throw 'is too large'
    if (!text.isWellFormed()) throw 'holds half a surrogate pair'
    return text
  }

  function copy(value: unknown, levels: number): unknown {
    if ((room -= VALUE) < 0 || levels < 0) throw 'is too large or nested too deeply'
    if (typeof value === 'string') return spend(value)
    // JSON has no -0.
    if (typeof value === 'number' && Number.isFinite(value)) return value || 0
    if (value === null || typeof value === 'boolean') return value
    if (value instanceof Date) return onDate(value)
    if (typeof value !== 'object') throw `holds ${typeof value === 'number' ? value : `a ${typeof value}`}`
    // A hole in a list is undefined, which is refused.
    if (Array.isArray(value)) {
      if (value.length * VALUE > room) throw 'is too large'
      return Array.from(value, (item) => copy(item, levels - 1))
    }
    if (gotten.has(value)) throw 'has a getter'
    if (!isPlain(value) || 'toJSON' in value) throw 'holds an object that is not plain JSON'
    const fields: [string, unknown][] = []
    let wasGotten = false
    for (const key of Object.keys(value)) {
      const field = Object.getOwnPropertyDescriptor(value, key)
      wasGotten ||= field?.get !== undefined
      const item: unknown = field?.get ? Reflect.get(value, key) : field?.value
      if (item !== undefined) fields.push([spend(key), copy(item, levels - 1)])
    }
    const copied = Object.fromEntries(fields)
    if (wasGotten) gotten.add(copied)
    return copied
  }
  return copy(source, LIMITS.payloadDepthLevels)
}

const OBJECT_NAMES = new Set(Object.getOwnPropertyNames(Object.prototype))

/** An object without a prototype, or with the `Object.prototype` of any realm. Other prototypes may hold fields. */
function isPlain(object: object): boolean {
  const prototype = Object.getPrototypeOf(object) as object | null
  if (prototype === null || prototype === Object.prototype) return true
  const isTop = Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'hasOwnProperty')
  return isTop && Object.getOwnPropertyNames(prototype).every((name) => OBJECT_NAMES.has(name))
}
