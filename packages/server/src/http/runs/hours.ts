import { HOUR_MS, hourOf } from '../../storage/engine/hours.ts'
import { refuseField, timeOf } from '../web/field.ts'

/**
 * Starts of hours: `from` inclusive, `to` exclusive. Sums are kept by hour, so a window counts each hour in which it begins
 * or ends as a whole.
 */
export interface HourWindow {
  from: number
  to: number
}

export function windowOf(query: { from: string; to: string }): HourWindow {
  const from = timeOf('from', query.from)
  const to = timeOf('to', query.to)
  if (to < from) throw refuseField('to', 'must not be before from')
  const start = hourOf(from)
  return { from: start, to: to === from ? start : hourOf(to - 1) + HOUR_MS }
}
