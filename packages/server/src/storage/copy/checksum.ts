/** Independent of row order and engine. */
import { hash } from 'node:crypto'
import type { Row } from './side.ts'
import { valueText } from './value-text.ts'

export interface Checksum {
  rows: number
  sum: bigint
}

const MASK = (1n << 64n) - 1n

export function newChecksum(): Checksum {
  return { rows: 0, sum: 0n }
}

/** Values are hashed as text, so an integer has one hash in any column type. */
export function addRows(checksum: Checksum, columns: readonly string[], rows: readonly Row[]): void {
  for (const row of rows) {
    const values = columns.map((column) => valueText(row[column]))
    checksum.sum = (checksum.sum + hash('sha256', JSON.stringify(values), 'buffer').readBigUInt64BE()) & MASK
  }
  checksum.rows += rows.length
}

export function checksumText({ sum }: Checksum): string {
  return sum.toString(16).padStart(16, '0')
}
