/** What several inputs of one tool share, and in what they differ. Pure. */
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { isRecordedNumber, parseRecorded } from '@tacho/contract/record/json-text.ts'

/** A value of an input: where it stands, such as `customer.id`, and its JSON. */
export interface Part {
  name: string
  text: string
}

export interface Differences {
  same: Part[]
  /** Of each input, in the order given. Null: it is not recorded, or not as whole JSON. */
  own: (Part[] | null)[]
}

const DEEPEST = 4
const PARTS = 60

export function differencesOf(inputs: readonly (string | null)[]): Differences {
  const read = inputs.map(partsOf)
  const known = read.filter((parts) => parts !== null)
  // What cannot be compared may differ.
  const isWhole = known.length === inputs.length
  const isShared = ({ name, text }: Part) => isWhole && known.every((parts) => parts.get(name) === text)
  const listed = (parts: ReadonlyMap<string, string>) => [...parts].map(([name, text]) => ({ name, text }))
  return {
    same: known[0] ? listed(known[0]).filter(isShared) : [],
    own: read.map((parts) => parts && listed(parts).filter((part) => !isShared(part))),
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
    // A member with a dot in its name may stand for the same place.
    parts.set(name, known === undefined ? text : `${known}, ${text}`)
  } else for (const [key, member] of members) collect(member, name === '' ? key : `${name}.${key}`, depth + 1, parts)
}
