/**
 * Whether arguments fit a tool's schema: checks types, required members and allowed values, and accepts what it does
 * not understand. The server decides about the call. This check only shows which errors of the server mean that the
 * tool never ran.
 */
import { isObject } from './message.ts'

const LEVELS_MAX = 20

export function fits(value: unknown, schema: unknown, level = 0): boolean {
  if (!isObject(schema) || level > LEVELS_MAX) return true
  const { type, enum: allowed, properties, required, items, additionalProperties } = schema
  const types = typeof type === 'string' ? [type] : type
  if (Array.isArray(types) && !types.some((each) => isOfType(value, each))) return false
  if (Array.isArray(allowed) && !allowed.some((each) => JSON.stringify(each) === JSON.stringify(value))) return false
  if (Array.isArray(value)) return value.every((item) => fits(item, items, level + 1))
  if (!isObject(value)) return true
  const known = isObject(properties) ? properties : {}
  if (Array.isArray(required) && !required.every((name) => Object.hasOwn(value, String(name)))) return false
  return Object.entries(value).every(([name, member]) =>
    Object.hasOwn(known, name)
      ? fits(member, known[name], level + 1)
      : additionalProperties !== false || isObject(schema['patternProperties']),
  )
}

function isOfType(value: unknown, type: unknown): boolean {
  switch (type) {
    case 'string':
    case 'boolean':
      return typeof value === type
    // A number that JavaScript cannot represent is an object here.
    case 'number':
      return typeof value === 'number' || JSON.isRawJSON(value)
    case 'integer':
      return Number.isInteger(value) || JSON.isRawJSON(value)
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isObject(value)
    case 'null':
      return value === null
    default:
      return true
  }
}
