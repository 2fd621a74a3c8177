import type { EventBatchRows } from '../../events.ts'

/** Approximate; without the payload. */
const EVENT_BYTES = 500

/** Characters stand for bytes, because counting bytes costs more than it is worth. */
export function batchBytes({ events }: EventBatchRows): number {
  return events.reduce((sum, { payload }) => sum + payload.length + EVENT_BYTES, 0)
}
