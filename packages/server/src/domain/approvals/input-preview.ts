import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { InputCheck, InputPreview } from '@tacho/contract/approvals/operator-approval.ts'
import { parseRecorded } from '@tacho/contract/record/json-text.ts'
import type { Json } from '@tacho/contract/record/payload-reader.ts'
import { callInShort } from '@tacho/contract/runs/call-text.ts'
import type { ApprovalRow, InputsBounds, RecordedInputRow } from '../../storage/approvals/approvals.ts'
import type { Storage } from '../../storage/storage.ts'
import { checkInput, type HashedRequest, type ShownInput } from './recorded-input.ts'
import { memberSlices } from '../record/json-slices.ts'
import { isoTime } from '../../storage/engine/times.ts'

const [SHORTENED, SEALS] = ['tachoShortened', 'inputSeals']

/** Of all inputs of a list. */
const INPUTS_BOUNDS: InputsBounds = { perRun: 200, bytes: 1_048_576 }
/** For requests that were made before their input was linked. The agent waits, so the event is among the newest. */
const SEARCH_BOUNDS = { rowsLookedAt: LIMITS.eventsLookedAt, limit: 200, pageBytes: LIMITS.pageBytes }

type Acts = Pick<Storage, 'findLinkedInputs' | 'findRecordedInputs' | 'findRecordedInput' | 'findRun'>

/** `undefined`: the list would have to read too much. */
type Recorded = RecordedInputRow | null | undefined

export interface InputInShort {
  text: string | null
  /** The event that has the input. Null: none is recorded; undefined: it is not known. */
  eventId?: string | null | undefined
  /** Null: the list would have to read too much. */
  check: InputCheck | null
  /** The decision with the input. Null: none is recorded, or the list would have to read too much. */
  decision: Json | null
}

/** In the order of `rows`. */
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
 * Retention removes runs whose approvals stay, and then anybody can record an event of the same id: it is not what the person
 * saw, and neither is an input that came after the decision.
 */
function isOf({ id, toolName, inputHash, decidedAt }: ApprovalRow, { payload, receivedAt }: RecordedInputRow): boolean {
  const parsedPayload = JSON.parse(payload) as Record<string, unknown>
  const isNamed = parsedPayload['approvalId'] === id && parsedPayload['toolName'] === toolName
  const isOfHash = String(parsedPayload['inputHash']).toLowerCase() === inputHash
  return isNamed && isOfHash && (decidedAt === null || receivedAt <= decidedAt)
}

/** Null: none is linked. */
export async function wholeInput(
  storage: Pick<Acts, 'findLinkedInputs'>,
  row: ApprovalRow,
): Promise<ShownInput | null> {
  const recorded = (await linkedInputs(storage, row.environmentId, [row])).get(row.id)
  return recorded ? shownInput(recorded.payload) : null
}

/** Whole, with its check. */
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
  // A number or a text in its place is no mark of an SDK.
  const isShortened = !!shortened && payload[shortened.start] === '{'
  return { json, seals: JSON.parse(sealsText) as unknown, isShortened }
}
