/** Formats a timeline for people. */
import type { EventRow } from '@tacho/contract/event.ts'
import { faint, printable, spokenBytes } from '../terminal/output.ts'

const EMPTY_PAYLOAD_BYTES = 2

/** One event on one line. `startedAt`: start of the run in milliseconds. */
export function eventLine(row: EventRow, startedAt: number): string {
  const since = ((Date.parse(row.timestamp) - startedAt) / 1000).toFixed(3)
  const size = row.payloadBytes > EMPTY_PAYLOAD_BYTES ? faint(`  ${spokenBytes(row.payloadBytes)}`) : ''
  const type = printable(row.eventType).padEnd(15)
  return `${row.timestamp}  ${`+${since}`.padStart(10)} s  ${type}  ${printable(row.label)}${size}`
}
