/** Where measured stores are: on the disk of the checkout, because a temporary folder may be in memory. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import path from 'node:path'

export const ROOT = path.resolve(import.meta.dirname, '../..')

/** Creates a folder that is removed when this process ends. */
export function makePlace(): string {
  const cache = path.join(ROOT, '.cache')
  mkdirSync(cache, { recursive: true })
  const place = mkdtempSync(path.join(cache, 'bench-'))
  process.on('exit', () => rmSync(place, { recursive: true, force: true }))
  return place
}
