/**
 * The arguments of a tool: their descriptions for a model, and faults in words, which a model can correct. A model
 * reads all tools before its first question, so descriptions contain only names, kinds and allowed values. This file
 * and the endpoint check all rules.
 */
import type { JsonSchemaType, StandardSchemaWithJSON } from '@modelcontextprotocol/server'

interface Property {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly format?: string
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly default?: unknown
  readonly description?: string
}

type Properties = Readonly<Record<string, Property>>

/** The schema of a tool's arguments: an object with these properties and no others. @param notes replace descriptions. */
export function argumentsOf<Given>(
  properties: object,
  required: readonly string[],
  notes: Readonly<Record<string, string>> = {},
): StandardSchemaWithJSON<Given, Given> {
  const known = properties as Properties
  const shown = Object.entries(known).map(([name, property]) => [name, shortened(property, notes[name])])
  const schema = {
    type: 'object',
    properties: Object.fromEntries(shown) as object,
    ...(required.length > 0 && { required }),
  } as JsonSchemaType
  const validate = (toolInput: unknown) => {
    const message = faultOf(toolInput, known, required)
    return message === null ? { value: toolInput as Given } : { issues: [{ message }] }
  }
  const jsonSchema = { input: () => schema, output: () => schema }
  return { '~standard': { version: 1, vendor: 'tacho', jsonSchema, validate } }
}

function shortened(property: Property, description: string | undefined): object {
  const { type, enum: allowed, default: fallback } = property
  return {
    // An absent argument means the same as null.
    ...(allowed ? { enum: allowed.filter((value) => value !== null) } : { type }),
    ...(fallback !== undefined && { default: fallback }),
    ...(description !== undefined && { description }),
  }
}

function faultOf(toolInput: unknown, properties: Properties, required: readonly string[]): string | null {
  if (typeof toolInput !== 'object' || toolInput === null) return 'the arguments must be an object'
  const names = Object.keys(properties)
  const unknown = Object.keys(toolInput).find((name) => !Object.hasOwn(properties, name))
  if (unknown !== undefined) {
    const known = names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`
    return `the tool has no argument ${JSON.stringify(unknown.slice(0, 60))}; ${known}`
  }
  const missing = required.find((name) => !Object.hasOwn(toolInput, name))
  if (missing !== undefined) return `${missing} is missing: it must be ${allowedOf(properties[missing] ?? {})}`
  for (const [name, value] of Object.entries(toolInput)) {
    const property = properties[name] ?? {}
    if (!isAllowed(value, property)) return `${name} must be ${allowedOf(property)}`
  }
  return null
}

const FORMATS = new Map([
  ['uuid', [/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i, 'a UUID, as the lists of other tools have it']],
  ['date-time', [/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i, 'a time such as 2026-01-31T12:00:00Z']],
] as const)
/** Patterns in words. */
const PATTERNS = new Map([
  ['^[0-9]{1,7}(\\.[0-9]{1,9})?$', 'a text with a decimal number such as "0.25"'],
  ['^[1-9][0-9]{0,8}$', 'a text with a whole number from 1, such as "2"'],
])

function isAllowed(value: unknown, { type, enum: allowed, format = '', pattern, ...bounds }: Property): boolean {
  if (allowed) return allowed.includes(value)
  if (type === 'integer') {
    const { minimum = -Infinity, maximum = Infinity } = bounds
    return Number.isSafeInteger(value) && (value as number) >= minimum && (value as number) <= maximum
  }
  if (type !== 'string') return true
  if (typeof value !== 'string') return false
  const { minLength = 0, maxLength = Infinity } = bounds
  const { length } = value
  const [form] = FORMATS.get(format as 'uuid') ?? []
  return (
    length >= minLength &&
    length <= maxLength &&
    (form?.test(value) ?? true) &&
    (pattern === undefined || new RegExp(pattern, 'u').test(value))
  )
}

/** The allowed values of a property, in words. */
function allowedOf({ type, enum: allowed, format = '', pattern, ...bounds }: Property): string {
  if (allowed) return `one of ${allowed.join(', ')}`
  if (type === 'integer') {
    const { minimum, maximum } = bounds
    if (maximum === undefined || maximum === Number.MAX_SAFE_INTEGER) return `a whole number from ${minimum ?? 0}`
    return `a whole number from ${minimum ?? 0} to ${maximum}`
  }
  const [, words] = FORMATS.get(format as 'uuid') ?? []
  const inWords = words ?? (pattern === undefined ? undefined : PATTERNS.get(pattern))
  if (inWords !== undefined) return inWords
  const { minLength = 0, maxLength } = bounds
  const least = minLength > 0 ? 'a text that is not empty' : 'a text'
  return maxLength === undefined ? least : `${least}, of at most ${maxLength} characters`
}
