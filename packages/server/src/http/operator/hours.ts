import { HOUR_MS, hourOf } from '../../storage/hours.ts'
import { refuseField, timeOf } from '../field.ts'

/** Starts of hours: `from` inclusive, `to` exclusive. */
export interface HourWindow {
  from: number
  to: number
}

export function windowOf(query: { from: string; to: string }): HourWindow {
  const from = timeOf('from', query.from)
  const to = timeOf('to', query.to)
  if (to < from) throw refuseField('to', 'must not be before from')
  return { from: hourOf(from), to: hourOf(to) + HOUR_MS }
}
