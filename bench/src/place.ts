/** The folder of measured stores. It is on the disk of the checkout, because a temporary folder may be in memory. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import path from 'node:path'

export const ROOT = path.resolve(import.meta.dirname, '../..')

/** Creates a folder that is removed when this process ends. */
export function makePlace(parent = path.join(ROOT, '.cache')): string {
  mkdirSync(parent, { recursive: true })
  const place = mkdtempSync(path.join(parent, 'bench-'))
  process.on('exit', () => rmSync(place, { recursive: true, force: true }))
  return place
}
