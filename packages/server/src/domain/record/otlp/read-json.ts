/** Corrects OTLP/JSON of some clients that protobuf's JSON reader would refuse, so that no span is lost. */
import { isObject } from '@tacho/contract/record/payload-reader.ts'

/** Throws if the body is not JSON, even after corrections. */
export function otlpJson(body: Uint8Array): unknown {
  const text = withWholeEscapes(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString())
  try {
    return JSON.parse(text)
  } catch {
    return JSON.parse(withQuotedNumbers(text))
  }
}

/** Replaces the escape of half an emoji by that of U+FFFD. */
function withWholeEscapes(text: string): string {
  if (!/\\u[dD][89a-fA-F]/.test(text)) return text
  return text.replaceAll(
    /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|[^u])/g,
    (escape) => (escape.length === 6 && /^\\u[dD][89a-fA-F]/.test(escape) ? String.raw`\ufffd` : escape),
  )
}

/** Quotes NaN and Infinity, which several JSON writers leave unquoted. protobuf's JSON has them as texts. */
function withQuotedNumbers(text: string): string {
  return text.replaceAll(/"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b/gs, (token) =>
    token[0] === '"' ? token : `"${token}"`,
  )
}

const LEVELS_MAX = 200
const INT64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n }

/** Turns a value that its type cannot have into a text. Called only if the item cannot be read as it was sent. */
export function withReadableValues(jsonValue: unknown, level = 0): unknown {
  if (level > LEVELS_MAX) return jsonValue
  if (Array.isArray(jsonValue)) return jsonValue.map((item) => withReadableValues(item, level + 1))
  if (!isObject(jsonValue)) return jsonValue
  const members = Object.entries(jsonValue).map(([name, value]): [string, unknown] => {
    const type = TYPES.get(name)
    if (type === undefined) return [name, withReadableValues(value, level + 1)]
    return type(value) || isObject(value) || Array.isArray(value) ? [name, value] : ['stringValue', String(value)]
  })
  return Object.fromEntries(members)
}

const TYPES = new Map<string, (value: unknown) => boolean>([
  ['intValue', isInt64],
  ['int_value', isInt64],
  ['doubleValue', (value) => typeof value === 'number' || /^(?:NaN|-?Infinity)$/.test(String(value))],
  ['double_value', (value) => typeof value === 'number' || /^(?:NaN|-?Infinity)$/.test(String(value))],
  ['boolValue', (value) => typeof value === 'boolean'],
  ['bool_value', (value) => typeof value === 'boolean'],
  ['stringValue', (value) => typeof value === 'string'],
  ['string_value', (value) => typeof value === 'string'],
])

function isInt64(value: unknown): boolean {
  if (typeof value === 'number') return Number.isInteger(value)
  if (typeof value !== 'string' || !/^-?\d{1,19}$/.test(value)) return false
  const number = BigInt(value)
  return number >= INT64.min && number <= INT64.max
}
