import type { EventBatchRows } from '../events.ts'

/** What an event weighs beside its payload, roughly. */
const EVENT_BYTES = 500

/** The weight of a batch in queue and commit. Characters stand for bytes: counting those would cost more than it tells. */
export function batchBytes({ events }: EventBatchRows): number {
  return events.reduce((sum, { payload }) => sum + payload.length + EVENT_BYTES, 0)
}
