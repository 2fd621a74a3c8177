/**
 * Validated telemetry on its way between threads. Receiving ten thousand events as objects would take the requests'
 * thread a tenth of a second, so the validating thread packs the parts that are stored.
 */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { NewEvent, RejectionRow } from '../../../storage/record/events.ts'
import { packedBuffers, packEvents, type PackedEvents } from '../../../storage/record/packed-batch.ts'
import type { ValidatedBatch } from '../event.ts'
import type { ValidatedTelemetry } from './telemetry-validation.ts'

/** A part is as large as a batch, so that even the largest request fits in a queue with room for one batch. */
export interface TelemetryPart {
  events: PackedEvents | []
  refused: RejectionRow[]
}

/** The fields of an event that an answer shows. */
export type ToldEvent = Pick<NewEvent, 'eventId' | 'time' | 'label'>

export interface PackedTelemetry extends Omit<ValidatedTelemetry, 'batch'> {
  batch: Omit<ValidatedBatch, 'body' | 'events' | 'refused'> & { events: ToldEvent[] }
  parts: TelemetryPart[]
}

export function packTelemetry({
  batch: { events, refused, body: _, ...batch },
  ...validated
}: ValidatedTelemetry): PackedTelemetry {
  const packedEvents = events.map(({ eventId, time, label }) => ({ eventId, time, label }))
  return { ...validated, batch: { ...batch, events: packedEvents }, parts: partsOf(events, refused) }
}

function partsOf(events: readonly NewEvent[], refused: readonly RejectionRow[]): TelemetryPart[] {
  const parts: TelemetryPart[] = []
  for (let from = 0; from < events.length;) {
    let to = from
    for (let bytes = 0; to < events.length && to - from < LIMITS.batchEvents; to++) {
      bytes += events[to]?.payload.length ?? 0
      if (to > from && bytes > LIMITS.batchBytes) break
    }
    parts.push({ events: packEvents(events.slice(from, to)), refused: [] })
    from = to
  }
  for (let at = 0; at < refused.length; at += LIMITS.batchEvents) {
    parts.push({ events: [], refused: refused.slice(at, at + LIMITS.batchEvents) })
  }
  return parts
}

export const buffersOf = ({ parts }: PackedTelemetry): ArrayBuffer[] =>
  parts.flatMap(({ events }) => ('numbers' in events ? packedBuffers(events) : []))
