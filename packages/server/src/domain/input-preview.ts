import { LIMITS } from '@tacho/contract/limits.ts'
import type { InputPreview } from '@tacho/contract/operator/approval.ts'
import { callInShort } from '@tacho/contract/told-call.ts'
import type { ApprovalRow, InputOfRequest, InputsBounds, RecordedInputRow, SoughtInput } from '../storage/approvals.ts'
import { memberSlices } from './json-slices.ts'
import { isoTime } from '../storage/iso-time.ts'

const SHORTENED = 'tachoShortened'

/** The agent waits for the decision, so the event is among the newest before it. */
const BOUNDS = { rowsLookedAt: LIMITS.eventsLookedAt, limit: 200, pageBytes: LIMITS.pageBytes }

export function soughtInput({ id, toolName, inputHash, createdAt }: ApprovalRow): SoughtInput {
  // The client recorded the event when it sent the request; its clock can be ahead by this much.
  return { approvalId: id, toolName, inputHash, until: createdAt + LIMITS.eventFutureMs, bounds: BOUNDS }
}

export const INPUTS_BOUNDS: InputsBounds = { perRun: 200, bytes: 1_048_576 }

export function inputOfRequest({ id, toolName, inputHash, runId }: ApprovalRow): InputOfRequest | null {
  return runId === null ? null : { approvalId: id, toolName, inputHash, runId }
}

export function inputInShort(payload: string): string {
  return callInShort(JSON.parse(payload) as Record<string, unknown>, LIMITS.inputInShortChars).toWellFormed()
}

export function toInputPreview({ eventId, receivedAt, payload }: RecordedInputRow): InputPreview | null {
  const [slice, shortened] = memberSlices(payload, ['input', SHORTENED])
  if (!slice) return null
  const json = payload.slice(slice.start, slice.end)
  const isTruncated = json.length > LIMITS.inputPreviewChars
  return {
    json: isTruncated ? json.slice(0, LIMITS.inputPreviewChars).toWellFormed() : json,
    isTruncated,
    isShortened: shortened !== null,
    bytes: Buffer.byteLength(json),
    eventId,
    recordedAt: isoTime(receivedAt),
  }
}
