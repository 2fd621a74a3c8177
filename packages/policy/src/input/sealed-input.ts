/**
 * Hashes an input so that a reader of its masked form can check that it is the approved one. Each masked value is
 * replaced by a seal before the input is hashed. The masked input and the seals give the same hash, and reveal nothing
 * about the masked values. The API key is the key of a seal: without it, nobody can guess a card number by trying all
 * of them.
 */
import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import canonicalize from 'canonicalize'
import { copyJson } from './json.ts'
import { POLICY_LIMITS } from '../limits.ts'

const VERSION = 'tacho-input-2'
const KEY_NAME = 'tacho-seal-1'
/** The member of a seal. An input's own object with this member is sealed too, so that it cannot pass for a seal. */
const SEAL = 'tachoSeal'

/** Seals by JSON Pointer. Each has 64 hexadecimal digits. */
export type InputSeals = Readonly<Record<string, string>>

/**
 * Thrown if seals do not belong to the input: a pointer leads nowhere or into another one, or an object looks sealed.
 */
export class UnfitSeals extends Error {}

/** The key of all seals of a client. */
export function sealKey(apiKey: string): Uint8Array {
  return hmac(sha256, utf8ToBytes(apiKey), utf8ToBytes(KEY_NAME))
}

/**
 * @param masked pointers to the values that masking changed, none inside another. Values that look like seals are
 * sealed too.
 */
export function sealInput(key: Uint8Array, input: unknown, masked: readonly string[]): InputSeals {
  copyJson(input, { values: Infinity, levels: POLICY_LIMITS.inputLevels })
  const seals = new Map<string, string>()
  const marks = treeOf(masked.map((pointer) => [pointer, '']))
  visit(input, marks, '')
  return Object.fromEntries(seals)

  function visit(value: unknown, mark: Mark | undefined, pointer: string): void {
    if (mark?.seal !== undefined || looksSealed(value)) {
      const text = canonicalize([pointer, value]) as string
      seals.set(pointer, bytesToHex(hmac(sha256, key, utf8ToBytes(text))))
    } else if (isContainer(value)) {
      for (const [name, item] of Object.entries(value))
        visit(item, mark?.members.get(name), `${pointer}/${escaped(name)}`)
    }
  }
}

/**
 * Lowercase hex SHA-256 of the RFC 8785 text of `["tacho-input-2", toolName, input]`, with a seal in place of each value that
 * `seals` names. The input may be masked there.
 * @throws UnfitSeals, or TypeError as `inputHash` does.
 */
export function sealedInputHash(toolName: string, input: unknown, seals: InputSeals): string {
  copyJson(input, { values: Infinity, levels: POLICY_LIMITS.inputLevels })
  const entries = Object.entries(seals)
  let used = 0
  const sealed = replaced(input, treeOf(entries))
  if (used !== entries.length) throw new UnfitSeals('A pointer leads to no value')
  return bytesToHex(sha256(utf8ToBytes(canonicalize([VERSION, toolName, sealed]) as string)))

  function replaced(value: unknown, mark: Mark | undefined): unknown {
    if (mark?.seal !== undefined) {
      used++
      return { [SEAL]: mark.seal }
    }
    if (looksSealed(value)) throw new UnfitSeals('A value that is not sealed looks sealed')
    if (Array.isArray(value)) return value.map((item, index) => replaced(item, mark?.members.get(String(index))))
    if (!isContainer(value)) return value
    // Object.fromEntries defines `__proto__` like any other member.
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, replaced(item, mark?.members.get(name))]),
    )
  }
}

/** The value at a JSON Pointer; undefined if there is none. */
export function valueAt(input: unknown, pointer: string): unknown {
  let value = input
  for (const name of namesOf(pointer)) {
    if (!isContainer(value) || !Object.hasOwn(value, name) || (Array.isArray(value) && name === 'length'))
      return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}

/** A tree of marked places. The work is bounded by the size of the input, however long its keys are. */
interface Mark {
  seal?: string
  members: Map<string, Mark>
}

function treeOf(entries: readonly (readonly [pointer: string, seal: string])[]): Mark {
  const root: Mark = { members: new Map() }
  for (const [pointer, seal] of entries) {
    let mark = root
    for (const name of namesOf(pointer)) {
      if (mark.seal !== undefined) throw new UnfitSeals('A pointer leads into a sealed value')
      let next = mark.members.get(name)
      if (next === undefined) mark.members.set(name, (next = { members: new Map() }))
      mark = next
    }
    if (mark.seal !== undefined || mark.members.size > 0) throw new UnfitSeals('A pointer leads into a sealed value')
    mark.seal = seal
  }
  return root
}

/** The names in a JSON Pointer (RFC 6901). */
function namesOf(pointer: string): string[] {
  if (pointer === '') return []
  if (!pointer.startsWith('/')) throw new UnfitSeals('A pointer does not begin with /')
  return pointer
    .slice(1)
    .split('/')
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
}

const escaped = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function looksSealed(value: unknown): boolean {
  return isContainer(value) && !Array.isArray(value) && Object.hasOwn(value, SEAL) && Object.keys(value).length === 1
}
