/** Where stores lie while they are measured: on the disk of the checkout, for a temporary folder may be memory. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import path from 'node:path'

export const ROOT = path.resolve(import.meta.dirname, '../..')

/** A folder of its own, which goes with this process. */
export function makePlace(): string {
  const cache = path.join(ROOT, '.cache')
  mkdirSync(cache, { recursive: true })
  const place = mkdtempSync(path.join(cache, 'bench-'))
  process.on('exit', () => rmSync(place, { recursive: true, force: true }))
  return place
}
