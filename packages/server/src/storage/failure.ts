/**
 * Why a run failed, in its row, so that lists of runs are cheap: the error of the outcome that closed it, or else the error
 * with the latest time, in whatever order they arrive. The message is content and has a column of its own: it goes with the payloads.
 */
import type { FailedWith, FailurePlace } from '@tacho/contract/failure.ts'
import { FAILURE_PLACES } from '@tacho/contract/words.ts'

export interface EventFailure extends FailedWith {
  place: FailurePlace
}

export interface RunFailure extends EventFailure {
  eventId: string
  time: number
  /** The outcome that closed the run tells it. */
  isFinal: boolean
}

/** The failure that a run keeps of its own and of one that was just stored. */
export function keptFailure(known: RunFailure | null, found: RunFailure): RunFailure {
  if (known === null || found.isFinal) return found
  if (known.isFinal || known.time > found.time) return known
  return known.time === found.time && known.eventId > found.eventId ? known : found
}

/** Characters of its texts, about. */
export function failureChars({ eventId, errorClass, message, place }: RunFailure): number {
  const texts = [eventId, errorClass, message, place.name]
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 0)
}

/** All but the message. */
export function failureText(failure: RunFailure | null): string | null {
  if (failure === null) return null
  const { eventId, time, isFinal, errorClass, place } = failure
  const row: Row = [eventId, time, isFinal ? 1 : 0, errorClass, place.kind, place.name]
  return JSON.stringify(row)
}

export function readFailure(text: string | null, message: string | null): RunFailure | null {
  if (text === null) return null
  const [eventId, time, isFinal, errorClass, kind, name] = JSON.parse(text) as Row
  return { eventId, time, isFinal: isFinal === 1, errorClass, message, place: { kind, name } }
}

type Row = [
  eventId: string,
  time: number,
  isFinal: 0 | 1,
  errorClass: string | null,
  kind: FailurePlace['kind'],
  name: string | null,
]

const KINDS: readonly unknown[] = FAILURE_PLACES
const FAILURE_CHARS = 4_096

/** Whether a text from outside is one that `failureText` writes. */
export function isFailureText(text: unknown): boolean {
  if (typeof text !== 'string') return text === null
  if (text.length > FAILURE_CHARS) return false
  try {
    const row: unknown = JSON.parse(text)
    if (!Array.isArray(row) || row.length !== 6) return false
    const [eventId, time, isFinal, errorClass, kind, name] = row as unknown[]
    const isText = (value: unknown) => value === null || typeof value === 'string'
    const isFlag = isFinal === 0 || isFinal === 1
    return (
      typeof eventId === 'string' &&
      Number.isSafeInteger(time) &&
      isFlag &&
      KINDS.includes(kind) &&
      [errorClass, name].every(isText)
    )
  } catch {
    return false
  }
}
