/** Checks the arguments of a tool, with faults that a model can correct: known names, allowed values. */
import { fromJsonSchema, type JsonSchemaType, type StandardSchemaWithJSON } from '@modelcontextprotocol/server'

type Checks<Given> = StandardSchemaWithJSON<Given, Given>['~standard']
type Properties = Readonly<Record<string, { readonly enum?: readonly unknown[] }>>

/** The schema of a tool's arguments: an object with these properties and no others. */
export function argumentsOf<Given>(
  properties: object,
  required: readonly string[],
): StandardSchemaWithJSON<Given, Given> {
  const schema = { type: 'object', properties, required, additionalProperties: false }
  // Without the schema library's own marks, which are not JSON Schema.
  const plain = JSON.parse(JSON.stringify(schema)) as JsonSchemaType & { properties: Properties }
  let checks: Checks<Given> | null = null
  const validate: Checks<Given>['validate'] = (given, options) => {
    const message = faultOf(given, plain.properties, required)
    if (message !== null) return { issues: [{ message }] }
    // Compiled by the first call: those of all tools would stop a server's loop for 60 ms.
    checks ??= fromJsonSchema<Given>(plain)['~standard']
    return checks.validate(given, options)
  }
  const jsonSchema = { input: () => plain, output: () => plain }
  return { '~standard': { version: 1, vendor: 'tacho', jsonSchema, validate } }
}

function faultOf(given: unknown, properties: Properties, required: readonly string[]): string | null {
  if (typeof given !== 'object' || given === null) return null
  const names = Object.keys(properties)
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(properties, name))
  if (unknown !== undefined) {
    const known = names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`
    return `the tool has no argument ${JSON.stringify(unknown.slice(0, 60))}; ${known}`
  }
  const missing = required.find((name) => !Object.hasOwn(given, name))
  if (missing !== undefined) return `${missing} is missing`
  for (const [name, value] of Object.entries(given)) {
    const allowed = properties[name]?.enum
    if (allowed && !allowed.includes(value)) return `${name} must be one of ${allowed.join(', ')}`
  }
  return null
}
