import { LIMITS } from '@tacho/contract/limits.ts'
import type { Page } from '../../page.ts'

/** The rows that fit on a page. Reads only one more, to see whether rows follow. */
export function firstRows<Row extends object>(found: Iterable<Row>, limit: number): Page<Row> {
  const rows: Row[] = []
  let bytes = 0
  for (const row of found) {
    bytes += bytesOf(row)
    if (rows.length === limit || (rows.length > 0 && bytes > LIMITS.listBytes)) return { rows, more: true }
    rows.push(row)
  }
  return { rows, more: false }
}

/** Size of its texts; everything else is small. */
function bytesOf(row: object): number {
  let bytes = 0
  for (const value of Object.values(row)) if (typeof value === 'string') bytes += Buffer.byteLength(value)
  return bytes
}
