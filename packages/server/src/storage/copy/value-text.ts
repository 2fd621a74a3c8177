import type { Value } from './side.ts'

export function valueText(value: Value | undefined): string | null {
  if (value === null || value === undefined) return null
  return Buffer.isBuffer(value) ? value.toString('base64') : String(value)
}
