import type { TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import type { TLocalizedValidationError } from 'typebox/error'
import { nearestName } from './text.ts'

/** `path` is a JSON Pointer; `message` completes a sentence that starts with the field's name. */
export interface SchemaFault {
  path: string
  message: string
}

export const FAULTS_MAX = 8
/** A longer name is not treated as a misspelling. */
export const SUGGESTED_CHARS = 64

/** A longer list would fill a line; the documentation has it. */
const ENUM_VALUES_MAX = 12

const compiled = new WeakMap<TSchema, Validator>()

/** Compiled at its first use: most schemas are not needed. */
export function validatorOf(schema: TSchema): Validator {
  const known = compiled.get(schema)
  if (known !== undefined) return known
  const validator = Compile(schema)
  compiled.set(schema, validator)
  return validator
}

export function schemaFaults(schema: TSchema, errors: readonly TLocalizedValidationError[]): SchemaFault[] {
  const faults = new Map<string, string>()
  for (const error of errors) {
    // The error of the object itself names the allowed fields; this one would repeat a name from the request.
    if (error.keyword === 'boolean') continue
    if (error.keyword === 'required') {
      for (const name of error.params.requiredProperties) add(`${error.instancePath}/${name}`, 'is missing')
    } else add(error.instancePath, messageOf(error, schemaPart(schema, error.schemaPath)))
  }
  return [...faults].slice(0, FAULTS_MAX).map(([path, message]) => ({ path, message }))

  function add(path: string, message: string): void {
    if (!faults.has(path)) faults.set(path, message)
  }
}

/** Maximum number of unknown names that are listed one by one. */
const UNKNOWN_NAMES_MAX = 100

/**
 * Finds lists and objects with more items than the schema allows. Check them first: to report all faults, the library
 * compares each item with every other and describes each unknown name, which takes seconds for a body within its
 * limits.
 */
export function sizeFaults(schema: TSchema, value: unknown): SchemaFault[] {
  const faults: SchemaFault[] = []
  addSizeFaults(faults, schema as Sized, value, '')
  return faults.slice(0, FAULTS_MAX)
}

interface Sized extends Part {
  properties?: Record<string, Sized>
  items?: Sized
  anyOf?: Sized[]
  minItems?: number
  maxItems?: number
  additionalProperties?: unknown
}

function addSizeFaults(faults: SchemaFault[], schema: Sized, value: unknown, path: string): void {
  const { properties = {}, items, anyOf = [], minItems, maxItems, additionalProperties } = schema
  for (const one of anyOf) addSizeFaults(faults, one, value, path)
  if (Array.isArray(value)) {
    if (maxItems !== undefined && value.length > maxItems) {
      faults.push({ path, message: sizeMessage(minItems, maxItems, 'item') })
    } else if (items) value.forEach((item, index) => addSizeFaults(faults, items, item, `${path}/${index}`))
  } else if (typeof value === 'object' && value !== null) {
    const unknown = Object.keys(value).length - Object.keys(properties).length
    if (additionalProperties === false && unknown > UNKNOWN_NAMES_MAX) {
      faults.push({ path, message: onlyFields(properties) })
    }
    for (const [name, member] of Object.entries(properties)) {
      if (Object.hasOwn(value, name)) addSizeFaults(faults, member, value[name as never], `${path}/${name}`)
    }
  }
}

/** Names only fields of the schema, because a name from the request may be a secret. */
function onlyFields(properties: object, unknown: readonly string[] = []): string {
  const known = Object.keys(properties)
  const meant = unknown
    .slice(0, FAULTS_MAX)
    .flatMap((name) => (name.length > SUGGESTED_CHARS ? [] : [nearestName(name, known) ?? []].flat()))
  const hint = meant.length === 0 ? '' : `: did you mean ${[...new Set(meant)].join(', ')}?`
  return `must have no fields other than ${known.join(', ')}${hint}`
}

export function faultLine(faults: readonly SchemaFault[], subject = ''): string {
  return faults.map(({ path, message }) => `${subject}${path.slice(1) || 'The body'} ${message}`).join('; ')
}

type Part = Record<string, unknown>

function schemaPart(schema: TSchema, schemaPath: string): Part {
  let innerSchema: unknown = schema
  for (const name of schemaPath.split('/').slice(1)) innerSchema = (innerSchema as Part | undefined)?.[name]
  return (innerSchema ?? {}) as Part
}

function messageOf(error: TLocalizedValidationError, schema: Part): string {
  switch (error.keyword) {
    case 'enum': {
      const values = error.params.allowedValues
      return values.length > ENUM_VALUES_MAX ? error.message : `must be one of ${values.join(', ')}`
    }
    case 'type':
      return isNumeric(schema) ? `must be ${numberOf(schema)}` : `must be ${typeWords(error.params.type)}`
    case 'minimum':
    case 'maximum':
      return `must be ${numberOf(schema)}`
    case 'minLength':
    case 'maxLength':
      return sizeMessage(schema['minLength'], schema['maxLength'], 'character')
    case 'minItems':
    case 'maxItems':
      return sizeMessage(schema['minItems'], schema['maxItems'], 'item')
    case 'pattern':
      return typeof schema['description'] === 'string'
        ? `does not match its description: ${schema['description']}`
        : 'has the wrong form'
    case 'format':
      return error.params.format === 'uuid' ? 'must be a UUID' : `must be a ${error.params.format} text`
    case 'additionalProperties':
      return onlyFields(schema['properties'] ?? {}, error.params.additionalProperties)
    default:
      return error.message
  }
}

function isNumeric({ type }: Part): boolean {
  return [type].flat().some((name) => name === 'integer' || name === 'number')
}

export function numberOf({ type, minimum, maximum }: { type?: unknown; minimum?: unknown; maximum?: unknown }): string {
  const noun = [type].flat().includes('integer') ? 'a whole number' : 'a number'
  if (typeof minimum === 'number' && typeof maximum === 'number') return `${noun} between ${minimum} and ${maximum}`
  if (typeof minimum === 'number') return `${noun} of at least ${minimum}`
  return typeof maximum === 'number' ? `${noun} of at most ${maximum}` : noun
}

function sizeMessage(min: unknown, max: unknown, noun: string): string {
  const least = typeof min === 'number' ? min : 0
  if (typeof max !== 'number') return least === 1 ? 'must not be empty' : `must have at least ${least} ${noun}s`
  const range = least > 0 ? `${least} to ${max}` : `at most ${max}`
  return `must have ${range} ${noun}s`
}

const TYPES = new Map([
  ['string', 'a string'],
  ['boolean', 'true or false'],
  ['object', 'an object'],
  ['array', 'an array'],
])

function typeWords(type: string | string[]): string {
  return [type]
    .flat()
    .map((name) => TYPES.get(name) ?? name)
    .join(' or ')
}
