/** Source: docs/decisions/0106-issues-from-what-fails.md. */
import { cancellationOf, failureOf, isErrorEvent } from '@tacho/contract/issues/failure.ts'
import type { RunOutcome } from '@tacho/contract/runs/run.ts'
import type { EventFailure } from '../../storage/record/failure.ts'

export function eventFailure(
  eventType: string,
  label: string,
  payload: Record<string, unknown>,
  outcome: RunOutcome | null,
): EventFailure | null {
  const isError = isErrorEvent(eventType, payload)
  if (!isError && outcome !== 'CANCELLED') return null
  const event = { eventType, label, payload }
  const failure = isError ? failureOf(event) : cancellationOf(event)
  return failure && { errorClass: failure.errorClass, message: failure.message, place: failure.place }
}
