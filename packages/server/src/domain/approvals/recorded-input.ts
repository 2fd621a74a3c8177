/**
 * Whether a recorded input is the one that an approval's hash covers.
 *
 *   not recorded, or another scheme --> cannot be checked
 *   the hash fits --every mask is sealed--> matches
 *        `--a mask may hide anything----> cannot be checked: masked
 *   it does not fit --shortened, or masked without seals--> cannot be checked
 *                `--otherwise--> does not match
 *
 * The text must have only one reading: the tool may read duplicate keys, and numbers that a double cannot hold,
 * differently.
 */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { InputCheck, InputPreview } from '@tacho/contract/approvals/operator-approval.ts'
import { isObject, type Json } from '@tacho/contract/record/payload-reader.ts'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import { sealedInputHash, valueAt, type InputSeals } from '@tacho/policy/input/sealed-input.ts'
import type { ApprovalRow, InputsBounds, RecordedInputRow } from '../../storage/approvals/approvals.ts'
import { parseRecorded } from '@tacho/contract/record/json-text.ts'
import { callInShort } from '@tacho/contract/runs/call-text.ts'
import type { Storage } from '../../storage/storage.ts'
import { memberSlices } from '../record/json-slices.ts'
import { isoTime } from '../../storage/engine/times.ts'

type HashedRequest = Pick<ApprovalRow, 'toolName' | 'inputHash' | 'hashScheme'>

export interface ShownInput {
  /** The recorded JSON text. */
  json: string
  /** Seals as the payload has them, in any shape. */
  seals: unknown
  isShortened: boolean
}

/** Hex digits of a SHA-256 hash. */
const DIGITS = 64
const SCHEMES = new Set<string | null>([null, 'tacho-input-1', 'tacho-input-2'])
const SEAL = /^[0-9a-f]{64}$/
/** Marks that the SDKs write where they mask and cut, and in place of any content. */
export const VALUE_MASK = /\[masked(?::[\w-]+)?\]/
export const CONTENT_MARK = /"tachoShortened"|\[masked\b|\[cut: |\[left out|\[unreadable|\[circular/
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
    const isMasked = VALUE_MASK.test(json)
    if (hashOf(() => inputHash(toolName, input)) === hash) return isMasked ? cannot('masked') : matches([])
    return isCut ? cannot('shortened') : isMasked ? cannot('masked') : DIFFERS
  }
  if (hashOf(() => sealedInputHash(toolName, input, seals)) !== hash) return isCut ? cannot('shortened') : DIFFERS
  const masked = pointers.map((pointer) => valueAt(input, pointer))
  // A real mask is never a number. Such a seal would only hide what the tool gets.
  if (masked.some((value) => typeof value !== 'string' && typeof value !== 'object')) return DIFFERS
  // For a sealed list or object, or a text without a mask, the hash covers nothing of what is shown.
  const isPlain = masked.every((value) => typeof value === 'string' && VALUE_MASK.test(value))
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

/** Null: the value is not a set of seals. */
function sealsIn(value: unknown): InputSeals | null {
  if (value === undefined || value === null) return {}
  if (!isObject(value)) return null
  const isSeal = (seal: unknown): seal is string => typeof seal === 'string' && SEAL.test(seal)
  return Object.values(value).every(isSeal) ? (value as InputSeals) : null
}

/** Undefined: the input has no hash, because it is too deep or its seals do not fit. */
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

/** Longer than any double that a program writes. A number of 100,000 digits would stop the server. */
const NUMBER_CHARS = 400

function isDouble(token: string): boolean {
  return token.length <= NUMBER_CHARS && digitsOf(token) === digitsOf(String(Number(token)))
}

/** The digits and the exponent of a number, the same for all its notations. */
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

const [SHORTENED, SEALS] = ['tachoShortened', 'inputSeals']

/** Bounds for all inputs of a list together. */
const INPUTS_BOUNDS: InputsBounds = { perRun: 200, bytes: 1_048_576 }
/** Bounds for requests from before inputs were linked. The agent is waiting, so the event is among the newest. */
const SEARCH_BOUNDS = { rowsLookedAt: LIMITS.eventsLookedAt, limit: 200, pageBytes: LIMITS.pageBytes }

type Acts = Pick<Storage, 'findLinkedInputs' | 'findRecordedInputs' | 'findRecordedInput' | 'findRun'>

/** `undefined`: the list would have to read too much. */
type Recorded = RecordedInputRow | null | undefined

interface InputInShort {
  text: string | null
  /** The event that contains the input. Null: none is recorded; undefined: unknown. */
  eventId?: string | null | undefined
  /** Null: the list would have to read too much. */
  check: InputCheck | null
  /** The decision with the input. Null: none is recorded, or the list would have to read too much. */
  decision: Json | null
}

/** Inputs in the order of `rows`. */
export async function inputsInShort(
  storage: Pick<Acts, 'findLinkedInputs' | 'findRecordedInputs'>,
  environmentId: string,
  rows: readonly ApprovalRow[],
): Promise<InputInShort[]> {
  const linked = await linkedInputs(storage, environmentId, rows)
  const payloads = new Map<string, string | null | undefined>()
  for (const [id, recorded] of linked) payloads.set(id, recorded && recorded.payload)
  const sought = rows.filter(isSearched).flatMap(({ id, toolName, inputHash, runId }) => {
    return runId === null ? [] : [{ approvalId: id, toolName, inputHash, runId }]
  })
  if (sought.length > 0) {
    const recordedInputs = await storage.findRecordedInputs(environmentId, sought, INPUTS_BOUNDS)
    sought.forEach(({ approvalId }, at) => payloads.set(approvalId, recordedInputs[at] ?? null))
  }
  return rows.map((row) => {
    const payload = payloads.has(row.id) ? payloads.get(row.id) : null
    if (payload === undefined) return { text: null, check: null, decision: null }
    const shown = payload === null ? null : shownInput(payload)
    const decision = shown === null || payload === null ? null : (parseRecorded(payload) as Json)
    const text = decision && callInShort(decision, LIMITS.inputInShortChars).toWellFormed()
    const eventId = isSearched(row) ? undefined : ((shown && linked.get(row.id)?.eventId) ?? null)
    return { text, eventId, check: checkInput(row, shown), decision }
  })
}

const isSearched = ({ inputEventId, keyFamily }: ApprovalRow): boolean => inputEventId === null && keyFamily === null

export async function linkedInputs(
  storage: Pick<Acts, 'findLinkedInputs'>,
  environmentId: string,
  rows: readonly ApprovalRow[],
): Promise<Map<string, Recorded>> {
  const linked = rows.flatMap(({ id, runId, inputEventId: eventId }) => {
    return runId === null || eventId === null ? [] : [{ id, runId, eventId }]
  })
  if (linked.length === 0) return new Map()
  const links = linked.map(({ runId, eventId }) => ({ runId, eventId }))
  const linkedInputs = await storage.findLinkedInputs(environmentId, links, INPUTS_BOUNDS.bytes)
  const byId = new Map(rows.map((row) => [row.id, row]))
  return new Map(
    linked.map(({ id }, at): [string, Recorded] => {
      const [row, recorded] = [byId.get(id), linkedInputs[at] ?? null]
      if (recorded === 'too_large') return [id, undefined]
      return [id, row && recorded && isOf(row, recorded) ? recorded : null]
    }),
  )
}

/**
 * Whether the event is the one that the person saw. Retention removes runs but keeps their approvals, so anybody can
 * later record an event with the same id. An input that arrived after the decision does not count either.
 */
function isOf({ id, toolName, inputHash, decidedAt }: ApprovalRow, { payload, receivedAt }: RecordedInputRow): boolean {
  const parsedPayload = JSON.parse(payload) as Record<string, unknown>
  const isNamed = parsedPayload['approvalId'] === id && parsedPayload['toolName'] === toolName
  const isOfHash = String(parsedPayload['inputHash']).toLowerCase() === inputHash
  return isNamed && isOfHash && (decidedAt === null || receivedAt <= decidedAt)
}

/** Null: no input is linked. */
export async function wholeInput(
  storage: Pick<Acts, 'findLinkedInputs'>,
  row: ApprovalRow,
): Promise<ShownInput | null> {
  const recorded = (await linkedInputs(storage, row.environmentId, [row])).get(row.id)
  return recorded ? shownInput(recorded.payload) : null
}

/** The complete recorded input, with its check. */
export async function inputPreview(storage: Acts, row: ApprovalRow): Promise<InputPreview | null> {
  const { environmentId } = row
  const recorded = isSearched(row)
    ? await searchedInput(storage, row)
    : (await linkedInputs(storage, environmentId, [row])).get(row.id)
  return recorded ? toInputPreview(row, recorded) : null
}

async function searchedInput(storage: Acts, row: ApprovalRow): Promise<RecordedInputRow | null> {
  const { environmentId, id: approvalId, toolName, inputHash, runId, createdAt } = row
  const run = runId === null ? null : await storage.findRun(environmentId, runId)
  // The approval names an external id, so ignore a run whose internal id matches it.
  if (run?.runId !== runId || run === null) return null
  // The client recorded the event when it sent the request; its clock can be ahead by this much.
  const until = createdAt + LIMITS.eventFutureMs
  const sought = { approvalId, toolName, inputHash, until, bounds: SEARCH_BOUNDS }
  return storage.findRecordedInput(environmentId, run.id, sought)
}

function toInputPreview(
  request: HashedRequest,
  { eventId, receivedAt, payload }: RecordedInputRow,
): InputPreview | null {
  const shown = shownInput(payload)
  if (shown === null) return null
  const { json, isShortened } = shown
  const isTruncated = json.length > LIMITS.inputPreviewChars
  return {
    json: isTruncated ? json.slice(0, LIMITS.inputPreviewChars).toWellFormed() : json,
    isTruncated,
    isShortened,
    bytes: Buffer.byteLength(json),
    eventId,
    recordedAt: isoTime(receivedAt),
    check: checkInput(request, shown),
  }
}

/** Null: the payload was removed, or is damaged. */
export function shownInput(payload: string): ShownInput | null {
  const [input, shortened, seals] = memberSlices(payload, ['input', SHORTENED, SEALS])
  if (!input) return null
  const json = payload.slice(input.start, input.end)
  const sealsText = seals ? payload.slice(seals.start, seals.end) : 'null'
  // The SDKs' mark of a shortened payload is an object. Ignore a number or a text of that name.
  const isShortened = !!shortened && payload[shortened.start] === '{'
  return { json, seals: JSON.parse(sealsText) as unknown, isShortened }
}
