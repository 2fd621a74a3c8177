/** Packs events into request bodies. Pure. */
import type { EventInput } from '@tacho/contract/record/event.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'

/** An encoded event: every attempt sends the same bytes. */
export interface PackedEvent {
  eventId: string
  text: string
}

export function packed(event: EventInput): PackedEvent {
  return { eventId: event.eventId, text: JSON.stringify(event) }
}

export function batchBody(batch: readonly PackedEvent[]): string {
  return `[${batch.map(({ text }) => text).join(',')}]`
}

/**
 * Events in order, in batches of at most 100 events and 1 MiB. A larger event gets its own batch, which the server
 * rejects. No batch has an event id twice, because the reply gives verdicts by id.
 */
export function* batches(events: Iterable<PackedEvent>): Generator<PackedEvent[]> {
  let batch: PackedEvent[] = []
  let ids = new Set<string>()
  let bytes = 2
  for (const event of events) {
    const more = Buffer.byteLength(event.text) + (batch.length > 0 ? 1 : 0)
    const full = batch.length === LIMITS.batchEvents || bytes + more > LIMITS.batchBytes || ids.has(event.eventId)
    if (batch.length > 0 && full) {
      yield batch
      batch = []
      ids = new Set()
      bytes = 2
    }
    bytes += Buffer.byteLength(event.text) + (batch.length > 0 ? 1 : 0)
    batch.push(event)
    ids.add(event.eventId)
  }
  if (batch.length > 0) yield batch
}
