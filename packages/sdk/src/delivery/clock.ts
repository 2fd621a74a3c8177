/**
 * A container or a resumed machine may have a wrong clock. The service refuses events that are too far ahead of its own
 * clock. The `Date` of the refusal shows the difference. The client subtracts it from all events, so their order stays.
 */
import type { PerEvent } from './answer.ts'
import { corrections } from './batch.ts'
import type { Diagnostics } from './diagnostics.ts'

const SURELY_MS = 60_000
/** A clock this far behind is reported. The service rejects events that are as far ahead. */
const SAID_MS = 300_000

const offsets = new Map<string, number>()
/** Addresses for which a slow clock was reported. */
const behind = new Set<string>()

/** The verdict. Events that were rejected because this clock is ahead are retried at once, with a corrected time. */
export function byServiceClock(
  baseUrl: string,
  offset: number,
  verdict: PerEvent,
  report: Diagnostics['report'],
): PerEvent {
  if (offset > SAID_MS && !behind.has(baseUrl)) {
    behind.add(baseUrl)
    report('warning', 'clock_behind', `${clockText(offset)} behind. Events have its time.`)
  }
  // NaN if there is no Date header.
  if (!(Math.abs(offset - (offsets.get(baseUrl) ?? 0)) > SURELY_MS)) return verdict
  const early = [...verdict.rejected].filter(([, code]) => code === 'timestamp_too_new').map(([id]) => id)
  if (early.length > 0 && offset < 0) {
    correct(baseUrl, offset)
    report('warning', 'clock_ahead', `${clockText(offset)} ahead. The times of events are corrected.`)
    return again(verdict, new Set(early))
  }
  // Somebody has corrected the clock.
  offsets.delete(baseUrl)
  corrections.delete(baseUrl)
  return verdict
}

function correct(baseUrl: string, offset: number): void {
  offsets.set(baseUrl, offset)
  // Quotes inside a text are escaped, so the first is the event's own.
  const time = /(?<="timestamp":)-?\d+/
  corrections.set(baseUrl, (fields) => fields.replace(time, (sent) => String(Number(sent) + offset)))
}

const again = ({ retry, rejected }: PerEvent, early: ReadonlySet<string>): PerEvent => ({
  kind: 'events',
  retry: new Set([...retry, ...early]),
  rejected: new Map([...rejected].filter(([id]) => !early.has(id))),
  now: true,
})

const clockText = (offset: number) => `The clock of this machine is ${Math.round(Math.abs(offset) / 60_000)} minutes`
