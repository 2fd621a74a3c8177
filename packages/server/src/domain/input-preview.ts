import { LIMITS } from '@tacho/contract/limits.ts'
import type { InputPreview } from '@tacho/contract/operator/approval.ts'
import type { ApprovalRow, RecordedInputRow, SoughtInput } from '../storage/approvals.ts'
import { memberSlices } from './json-slices.ts'
import { isoTime } from './run.ts'

/** SDKs set this key on a payload that they shorten. */
const SHORTENED = 'tachoShortened'

/** The agent waits for the decision, so the event is among the newest before it. */
const BOUNDS = { rowsLookedAt: LIMITS.eventsLookedAt, limit: 200, pageBytes: LIMITS.pageBytes }

export function soughtInput({ id, toolName, inputHash, createdAt }: ApprovalRow): SoughtInput {
  // The client recorded the event when it sent the request; its clock can be ahead by this much.
  return { approvalId: id, toolName, inputHash, until: createdAt + LIMITS.eventFutureMs, bounds: BOUNDS }
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
