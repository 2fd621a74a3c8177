import type { EventBatchRows } from './events.ts'

const EVENT_BYTES = 500

/** Approximate. Characters stand for bytes, because counting bytes costs more than it is worth. */
export function batchBytes({ events }: EventBatchRows): number {
  return events.reduce((sum, { payload }) => sum + payload.length + EVENT_BYTES, 0)
}
