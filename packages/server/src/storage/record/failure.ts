/**
 * Why a run failed or was cancelled, stored in its row for lists of runs: the closing outcome, or else the latest
 * error, in any order of arrival. The message is content, in a separate column, so it is removed with the payloads.
 */
import { hash } from 'node:crypto'
import type { FailedWith, FailurePlace } from '@tacho/contract/issues/failure.ts'
import type { RunStatus } from '@tacho/contract/runs/run.ts'
import { FAILURE_PLACES } from '@tacho/contract/engine/words.ts'

export interface EventFailure extends FailedWith {
  place: FailurePlace
}

export interface RunFailure extends EventFailure {
  eventId: string
  time: number
  isFinal: boolean
  failed: readonly FailedPlace[]
}

/** The place of a tool's error. An outcome that repeats the error does not name the tool. */
interface FailedPlace {
  time: number
  errorClass: string | null
  /** Hash of the message, so that no content is kept; null: no message. */
  mark: string | null
  place: FailurePlace
}

const FAILED_PLACES = 4

export function isError({ failure, outcome }: { failure: EventFailure | null; outcome: RunStatus | null }): boolean {
  return failure !== null && outcome !== 'CANCELLED'
}

export function foundFailure(failure: EventFailure, at: Pick<RunFailure, 'eventId' | 'time' | 'isFinal'>): RunFailure {
  const { errorClass, place } = failure
  const isPlaced = place.name !== null && !at.isFinal
  const failed = isPlaced ? [{ time: at.time, errorClass, mark: markOf(failure), place }] : []
  return { ...failure, ...at, failed }
}

/** Events arrive in any order, but the result must be the same. */
export function keptFailure(known: RunFailure | null, newFailure: RunFailure): RunFailure {
  if (known === null) return newFailure
  const failed = newFailure.failed.length === 0 ? known.failed : latestPlaces([...known.failed, ...newFailure.failed])
  const laterFailure = isLater(newFailure, known) ? newFailure : known
  return laterFailure === known && failed === known.failed ? known : { ...laterFailure, failed }
}

function isLater(newFailure: RunFailure, known: RunFailure): boolean {
  if (newFailure.isFinal || known.isFinal) return newFailure.isFinal
  return newFailure.time > known.time || (newFailure.time === known.time && newFailure.eventId >= known.eventId)
}

function latestPlaces(places: readonly FailedPlace[]): FailedPlace[] {
  const texts = new Map(places.map((place) => [place, JSON.stringify(placeRow(place).slice(1))]))
  const text = (place: FailedPlace): string => texts.get(place) ?? ''
  const inOrder = places.toSorted((a, b) => b.time - a.time || (text(a) < text(b) ? -1 : 1))
  return inOrder
    .filter((one, at) => inOrder.findIndex((other) => text(other) === text(one)) === at)
    .slice(0, FAILED_PLACES)
}

export function failurePlace(failure: RunFailure): FailurePlace {
  const { errorClass, place } = failure
  if (place.name !== null) return place
  const mark = markOf(failure)
  const isSame = (one: FailedPlace): boolean =>
    mark === null
      ? errorClass !== null && one.errorClass === errorClass
      : one.mark === mark && (one.errorClass ?? errorClass) === (errorClass ?? one.errorClass)
  const same = failure.failed.filter(isSame)
  // If the message was removed, for example by retention, the error may belong to another tool.
  if (mark === null && same.length > 1) return place
  return (same.find((one) => one.place.kind !== 'step') ?? same[0])?.place ?? place
}

const MARK_CHARS = 8

function markOf({ message }: FailedWith): string | null {
  return message === null ? null : hash('sha256', message, 'base64url').slice(0, MARK_CHARS)
}

export function failureChars({ eventId, errorClass, message, place, failed }: RunFailure): number {
  const texts = [eventId, errorClass, message, place.name, ...failed.flatMap((one) => [one.errorClass, one.place.name])]
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 0)
}

export function failureText(failure: RunFailure | null): string | null {
  if (failure === null) return null
  const { eventId, time, isFinal, errorClass, place, failed } = failure
  const row: Row = [eventId, time, isFinal ? 1 : 0, errorClass, place.kind, place.name]
  return JSON.stringify(failed.length === 0 ? row : [...row, failed.map(placeRow)])
}

function placeRow({ time, errorClass, mark, place }: FailedPlace): PlaceRow {
  return [time, errorClass, mark, place.kind, place.name]
}

export function readFailure(text: string | null, message: string | null): RunFailure | null {
  if (text === null) return null
  const [eventId, time, isFinal, errorClass, kind, name, failed = []] = JSON.parse(text) as Row
  return {
    eventId,
    time,
    isFinal: isFinal === 1,
    errorClass,
    message,
    place: { kind, name },
    failed: failed.map(readPlace),
  }
}

function readPlace([time, errorClass, mark, kind, name]: PlaceRow): FailedPlace {
  return { time, errorClass, mark, place: { kind, name } }
}

type Row = [
  eventId: string,
  time: number,
  isFinal: 0 | 1,
  errorClass: string | null,
  kind: FailurePlace['kind'],
  name: string | null,
  failed?: PlaceRow[],
]

type PlaceRow = [
  time: number,
  errorClass: string | null,
  mark: string | null,
  kind: FailurePlace['kind'],
  name: string | null,
]

const KINDS: readonly unknown[] = FAILURE_PLACES
const FAILURE_CHARS = 16_384

export function isFailureText(text: unknown): boolean {
  if (typeof text !== 'string') return text === null
  if (text.length > FAILURE_CHARS) return false
  try {
    const row: unknown = JSON.parse(text)
    if (!Array.isArray(row) || row.length < 6 || row.length > 7) return false
    const [eventId, time, isFinal, errorClass, kind, name, failed = []] = row as unknown[]
    return (
      typeof eventId === 'string' &&
      Number.isSafeInteger(time) &&
      (isFinal === 0 || isFinal === 1) &&
      KINDS.includes(kind) &&
      [errorClass, name].every(isText) &&
      Array.isArray(failed) &&
      failed.length <= FAILED_PLACES &&
      failed.every(isPlaceRow)
    )
  } catch {
    return false
  }
}

function isPlaceRow(row: unknown): boolean {
  if (!Array.isArray(row) || row.length !== 5) return false
  const [time, errorClass, mark, kind, name] = row as unknown[]
  return Number.isSafeInteger(time) && KINDS.includes(kind) && [errorClass, mark, name].every(isText)
}

const isText = (value: unknown): boolean => value === null || typeof value === 'string'
