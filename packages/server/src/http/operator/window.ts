import type { Refusal } from '../reply-error.ts'
import { isRefusal } from '../reply-error.ts'
import { refuseField, timeOf } from '../field.ts'

export const HOUR_MS = 3_600_000

/** Starts of hours: `from` inclusive, `to` exclusive. Both hours of a query are included whole. */
export interface HourWindow {
  from: number
  to: number
}

export function windowOf(query: { from: string; to: string }): HourWindow | Refusal {
  const from = timeOf('from', query.from)
  if (isRefusal(from)) return from
  const to = timeOf('to', query.to)
  if (isRefusal(to)) return to
  if (to < from) return refuseField('to', 'must not be before from')
  return { from: startOfHour(from), to: startOfHour(to) + HOUR_MS }
}

function startOfHour(time: number): number {
  return Math.floor(time / HOUR_MS) * HOUR_MS
}
