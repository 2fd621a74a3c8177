/** Compares the values of inputs with each other, and with earlier results. Pure. */
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { isRecordedNumber, parseRecorded } from '@tacho/contract/record/json-text.ts'

/** Finds the values that several inputs of a tool share, and those in which they differ. Pure. */

/** A value in an input: its path, such as `customer.id`, and its JSON. */
export interface InputPart {
  name: string
  text: string
}

interface Differences {
  same: InputPart[]
  /**
   * The parts that only this input has, for each input in the given order. Null: the input is not recorded, or its JSON
   * is incomplete.
   */
  own: (InputPart[] | null)[]
}

const DEEPEST = 4
const PARTS = 60

export function differencesOf(inputs: readonly (string | null)[]): Differences {
  const read = inputs.map(partsOf)
  const known = read.filter((parts) => parts !== null)
  // If an input cannot be compared, the others may differ from it.
  const isWhole = known.length === inputs.length
  const isShared = ({ name, text }: InputPart) => isWhole && known.every((parts) => parts.get(name) === text)
  const listed = (parts: ReadonlyMap<string, string>) => [...parts].map(([name, text]) => ({ name, text }))
  return {
    same: known[0] ? listed(known[0]).filter(isShared) : [],
    own: read.map((parts) => parts && listed(parts).filter((listedPart) => !isShared(listedPart))),
  }
}

function partsOf(json: string | null): Map<string, string> | null {
  if (json === null) return null
  try {
    const parts = new Map<string, string>()
    collect(parseRecorded(json), '', 0, parts)
    return parts
  } catch {
    return null
  }
}

function collect(value: unknown, name: string, depth: number, parts: Map<string, string>): void {
  const members = isObject(value) && !isRecordedNumber(value) && depth < DEEPEST ? Object.entries(value) : []
  if (members.length === 0 || parts.size >= PARTS) {
    const known = parts.get(name)
    const text = JSON.stringify(value)
    // `{"a.b": 1}` and `{"a": {"b": 1}}` have the same path.
    parts.set(name, known === undefined ? text : `${known}, ${text}`)
  } else for (const [key, member] of members) collect(member, name === '' ? key : `${name}.${key}`, depth + 1, parts)
}

/** Finds the values of an input that an earlier result contains: the input probably depends on it. Pure. */

const TOKEN = /"(?<text>(?:[^"\\]|\\.)*)"(?<key>\s*:)?|(?<number>-?\d[\d.eE+-]*)/gsu
/** Shorter values occur in results by chance. */
const CHARS = 4
const VALUES = 200

/**
 * The longest text or number of the input that occurs in the result as a whole value or word. Both are JSON, and may be
 * cut off.
 */
export function sharedValue(input: string, result: string): string | null {
  const values = new Set<string>()
  for (const { groups: { text, key, number } = {} } of input.matchAll(TOKEN)) {
    const value = text ?? number
    if (value !== undefined && key === undefined && value.length >= CHARS) values.add(value)
    if (values.size === VALUES) break
  }
  const longest = [...values].sort((one, other) => other.length - one.length)
  return longest.find((value) => hasWhole(result, value)) ?? null
}

const PART_OF_WORD = /[\p{L}\p{N}_]/u

function hasWhole(text: string, value: string): boolean {
  for (let at = text.indexOf(value); at !== -1; at = text.indexOf(value, at + value.length)) {
    const around = [text.charAt(at - 1), text.charAt(at + value.length)]
    if (!around.some((character) => PART_OF_WORD.test(character))) return true
  }
  return false
}

/** Many tools return JSON as a text. Returns the JSON inside that text, without escapes; any other value unchanged. */
export function innerJson(json: string | null): string | null {
  if (json === null || !json.startsWith('"')) return json
  try {
    const text: unknown = JSON.parse(json)
    if (typeof text !== 'string' || !/^\s*[[{]/.test(text)) return json
    JSON.parse(text)
    return text.trim()
  } catch {
    return json
  }
}

/** A shared value for people, without JSON escapes. */
export function plainValue(shared: string): string {
  try {
    return JSON.parse(`"${shared}"`) as string
  } catch {
    return shared
  }
}
