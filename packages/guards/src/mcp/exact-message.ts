/**
 * Reads the messages of one side. The other side gets a message written anew, never the sender's bytes: a receiver
 * could end a line at a carriage return, or use the first of two equal keys.
 */
import { isUtf8 } from 'node:buffer'
import { isObject, keyOf, type Message } from './message.ts'

// Members of ES2026 that TypeScript does not declare yet.
declare global {
  interface JSON {
    parse(text: string, reviver: (key: string, value: unknown, context: { source: string }) => unknown): unknown
    rawJSON(text: string): object
    isRawJSON(value: unknown): boolean
  }
}

export interface ExactMessage {
  readonly message: Message
  /** The text that the other side receives. */
  readonly text: string
  /** Why the message must not pass; null if it can. */
  readonly fault: string | null
  /** Path of the first number in `params` that JavaScript cannot represent, for example `params.arguments.id`. */
  readonly inexact: string | null
}

/**
 * The keys of a message in every spelling. Some programs ignore case and would read another spelling as a second method
 * or tool.
 */
const MESSAGE_KEYS = spellings(['jsonrpc', 'id', 'method', 'params', 'result', 'error'])
const CALL_KEYS = spellings(['name', 'arguments', 'inputResponses', 'requestState', '_meta'])
const TASK_KEYS = spellings(['taskId', 'inputResponses', '_meta'])
const KEYS_OF = new Map([
  ['tools/call', CALL_KEYS],
  ['tasks/update', TASK_KEYS],
])

/** Maximum length of a number: 1e308 without an exponent has 309 characters. */
const NUMBER_LENGTH_MAX = 400

/** The messages of a line, one unless it is a batch (2025-03-26); null if it is not JSON-RPC in UTF-8. */
export function readMessages(line: Buffer): ExactMessage[] | null {
  if (!isUtf8(line)) return null
  try {
    const value = parseExactly(line.toString())
    const messages = Array.isArray(value) ? value : [value]
    if (messages.length === 0 || !messages.every((each) => isObject(each) && !JSON.isRawJSON(each))) return null
    return messages.map((message: Message) => ({
      message,
      text: JSON.stringify(message),
      fault: faultOf(message),
      inexact: inexactIn(message.params, 'params'),
    }))
  } catch {
    // The message is no JSON, or nested too deeply to be written again.
    return null
  }
}

/**
 * Like JSON.parse, but a number that JavaScript cannot represent keeps its text, and JSON.stringify writes that text.
 */
export function parseExactly(text: string): unknown {
  return JSON.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && !isExact(value, source) ? JSON.rawJSON(source) : value,
  )
}

export function isExactNumber(source: string): boolean {
  return isExact(Number(source), source)
}

/** Whether JavaScript writes the number with the same value as its text. */
function isExact(value: number, source: string): boolean {
  if (source.length > NUMBER_LENGTH_MAX) return false
  const decimal = decimalOf(source)
  if (decimalOf(String(value)) === decimal) return true
  // C programs write 0.1 with 17 digits. Those are the same number.
  return !Number.isInteger(value) && Number.isFinite(value) && decimalOf(value.toPrecision(17)) === decimal
}

/** Returns equal texts for equal values: the digits without outer zeros, and the power of ten. */
function decimalOf(text: string): string {
  const [, sign, whole = '', fraction = '', power = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  const short = digits.replace(/0+$/, '')
  if (short === '') return whole && '0'
  return `${sign}${short}e${Number(power) - fraction.length + digits.length - short.length}`
}

function inexactIn(value: unknown, place: string): string | null {
  if (JSON.isRawJSON(value)) return place
  if (typeof value !== 'object' || value === null) return null
  for (const [key, part] of Object.entries(value)) {
    const inexactPlace = inexactIn(part, Array.isArray(value) ? `${place}[${key}]` : `${place}.${key}`)
    if (inexactPlace !== null) return inexactPlace
  }
  return null
}

function faultOf(message: Message): string | null {
  const { id, method, params } = message
  // Reject an id that has no key: its answer would not be found, and two numbers beyond 2^53 can be equal in
  // JavaScript. A reply to an unreadable message has the id null.
  if (id !== undefined && keyOf(id) === undefined && !(id === null && method === undefined)) {
    return 'The id must be a text, or a number from -(2^53 - 1) to 2^53 - 1.'
  }
  const keys = typeof method === 'string' ? KEYS_OF.get(method) : undefined
  return misspelt(message, MESSAGE_KEYS) ?? (keys ? misspelt(params, keys) : null)
}

/** The keys by their form in lower case. */
function spellings(keys: readonly string[]): ReadonlyMap<string, string> {
  return new Map(keys.map((key) => [key.toLowerCase(), key]))
}

function misspelt(value: unknown, known: ReadonlyMap<string, string>): string | null {
  if (!isObject(value)) return null
  for (const key of Object.keys(value)) {
    // Both conversions are needed: the long s becomes "s" by the first, and the Kelvin sign "k" by the second.
    const right = known.get(key.toUpperCase().toLowerCase())
    if (right !== undefined && right !== key) return `The key ${JSON.stringify(key)} must be written ${right}.`
  }
  return null
}
