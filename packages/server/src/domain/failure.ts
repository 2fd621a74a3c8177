/** The error of an event, as its run keeps it. Source: decision "Why a run failed" in docs/decisions. */
import { failureOf, isErrorEvent } from '@tacho/contract/failure.ts'
import type { EventFailure } from '../storage/failure.ts'

export function eventFailure(eventType: string, label: string, payload: Record<string, unknown>): EventFailure | null {
  if (!isErrorEvent(eventType, payload)) return null
  const failure = failureOf({ eventType, label, payload })
  return failure && { errorClass: failure.errorClass, message: failure.message, place: failure.place }
}
