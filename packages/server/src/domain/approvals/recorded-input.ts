/**
 * Whether a recorded input is the one that an approval's hash covers.
 *
 *   not recorded, or another scheme --> cannot be checked
 *   the hash fits --every mask is sealed--> matches
 *        `--a mask may hide anything----> cannot be checked: masked
 *   it does not fit --shortened, or masked without seals--> cannot be checked
 *                `--otherwise--> does not match
 *
 * The text itself must say one thing only: duplicate keys, and numbers that a double cannot hold, read otherwise here than in
 * the tool.
 */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { InputCheck } from '@tacho/contract/approvals/operator-approval.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import { sealedInputHash, valueAt, type InputSeals } from '@tacho/policy/input/sealed-input.ts'
import type { ApprovalRow } from '../../storage/approvals/approvals.ts'

export type HashedRequest = Pick<ApprovalRow, 'toolName' | 'inputHash' | 'hashScheme'>

export interface ShownInput {
  /** As recorded. */
  json: string
  /** From the payload, so of any shape. */
  seals: unknown
  isShortened: boolean
}

/** Of SHA-256. */
const DIGITS = 64
const SCHEMES = new Set<string | null>([null, 'tacho-input-1', 'tacho-input-2'])
const SEAL = /^[0-9a-f]{64}$/
/** Marks of the SDKs where they mask and cut. */
const MASK = /\[masked(?::[\w-]+)?\]/
const CUT = /\[cut: \d+ /

export function checkInput(
  { toolName, inputHash: hash, hashScheme }: HashedRequest,
  shown: ShownInput | null,
): InputCheck {
  if (shown === null) return cannot('not_recorded')
  if (hash.length !== DIGITS || !SCHEMES.has(hashScheme)) return cannot('other_scheme')
  const { json, isShortened } = shown
  const isCut = isShortened && CUT.test(json)
  const seals = sealsIn(shown.seals)
  if (seals === null || !saysOneThing(json)) return DIFFERS
  const input = JSON.parse(json) as unknown
  const pointers = Object.keys(seals)
  if (pointers.length === 0) {
    const isMasked = MASK.test(json)
    if (hashOf(() => inputHash(toolName, input)) === hash) return isMasked ? cannot('masked') : matches([])
    return isCut ? cannot('shortened') : isMasked ? cannot('masked') : DIFFERS
  }
  if (hashOf(() => sealedInputHash(toolName, input, seals)) !== hash) return isCut ? cannot('shortened') : DIFFERS
  const masked = pointers.map((pointer) => valueAt(input, pointer))
  // A mask is never a number, so such a seal only hides what the tool gets.
  if (masked.some((value) => typeof value !== 'string' && typeof value !== 'object')) return DIFFERS
  // Inside a sealed list or object, and in a text without a mask, the hash covers nothing of what is shown.
  const isPlain = masked.every((value) => typeof value === 'string' && MASK.test(value))
  return isPlain ? matches(pointers) : { ...cannot('masked'), ...sealedIn(pointers) }
}

function sealedIn(pointers: readonly string[]): Pick<InputCheck, 'sealed' | 'sealedAt'> {
  const shown = pointers
    .slice(0, LIMITS.sealedShown)
    .map((pointer) => pointer.slice(0, LIMITS.sealedPointerChars).toWellFormed())
  return { sealed: pointers.length, ...(shown.length > 0 && { sealedAt: shown }) }
}

const DIFFERS: InputCheck = { result: 'does_not_match', reason: null, sealed: 0 }
const matches = (pointers: readonly string[]): InputCheck => {
  return { result: 'matches', reason: null, ...sealedIn(pointers) }
}
const cannot = (reason: InputCheck['reason']): InputCheck => ({ result: 'cannot_be_checked', reason, sealed: 0 })

/** Null: they are no seals. */
function sealsIn(value: unknown): InputSeals | null {
  if (value === undefined || value === null) return {}
  if (!isObject(value)) return null
  const isSeal = (seal: unknown): seal is string => typeof seal === 'string' && SEAL.test(seal)
  return Object.values(value).every(isSeal) ? (value as InputSeals) : null
}

/** Undefined: the input has no hash, as it is too deep or its seals do not fit. */
function hashOf(compute: () => string): string | undefined {
  try {
    return compute()
  } catch {
    return undefined
  }
}

const TOKEN = /"(?:[^"\\]|\\.)*"(\s*:)?|-?\d[\d.eE+-]*/g

function saysOneThing(json: string): boolean {
  let keys = 0
  for (const [token, colon] of json.matchAll(TOKEN)) {
    if (colon !== undefined) keys++
    else if (!token.startsWith('"') && !isDouble(token)) return false
  }
  return keys === keysOf(JSON.parse(json))
}

/** Longer than any double that a program writes. Digits by the hundred thousand would stop the server. */
const NUMBER_CHARS = 400

function isDouble(token: string): boolean {
  return token.length <= NUMBER_CHARS && digitsOf(token) === digitsOf(String(Number(token)))
}

/** The digits and the exponent of a number, in whatever form it is written. */
function digitsOf(number: string): string {
  const [mantissa = '', exponent = '0'] = number.toLowerCase().replace(/^-/, '').split('e')
  const [whole = '', part = ''] = mantissa.split('.')
  const digits = `${whole}${part}`.replace(/^0+/, '')
  const plain = digits.replace(/0+$/, '')
  const zeros = digits.length - plain.length
  return plain === '' ? '0' : `${number.startsWith('-') ? '-' : ''}${plain}e${Number(exponent) - part.length + zeros}`
}

function keysOf(value: unknown): number {
  const open = [value]
  let keys = 0
  while (open.length > 0) {
    const next = open.pop()
    if (typeof next !== 'object' || next === null) continue
    const items: unknown[] = Object.values(next)
    if (!Array.isArray(next)) keys += items.length
    for (const item of items) open.push(item)
  }
  return keys
}
