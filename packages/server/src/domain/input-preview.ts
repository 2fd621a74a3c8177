/** The tool input that operators see beside an approval. */
import { LIMITS } from '@tacho/contract/limits.ts'
import type { InputPreview } from '@tacho/contract/operator/approval.ts'
import type { ApprovalRow, RecordedInputRow, SoughtInput } from '../storage/approvals.ts'
import { memberSlices } from './json-slices.ts'
import { isoTime } from './run.ts'

/** The SDKs put this beside what they had to cut. */
const SHORTENED = 'tachoShortened'

/** What is searched of a run: the agent waits for the decision, so the event is among the newest before it. */
const BOUNDS = { rowsLookedAt: LIMITS.eventsLookedAt, limit: 200, pageBytes: LIMITS.pageBytes }

export function soughtInput({ id, toolName, inputHash, createdAt }: ApprovalRow): SoughtInput {
  // The client recorded it when it asked, by a clock that may be ahead by this much.
  return { approvalId: id, toolName, inputHash, until: createdAt + LIMITS.eventFutureMs, bounds: BOUNDS }
}

/** The text as it was recorded, cut to a bound in characters. Null when the event has no input after all. */
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
