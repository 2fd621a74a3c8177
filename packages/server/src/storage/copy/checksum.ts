/** Independent of row order and engine. */
import { hash } from 'node:crypto'
import type { Row, Value } from './side.ts'

export type Checksum = ReturnType<typeof newChecksum>

const MASK = (1n << 64n) - 1n

/** Exact, and the same on every engine. */
export function valueText(value: Value | undefined): string | null {
  if (value === null || value === undefined) return null
  return Buffer.isBuffer(value) ? value.toString('base64') : String(value)
}

export function newChecksum() {
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
