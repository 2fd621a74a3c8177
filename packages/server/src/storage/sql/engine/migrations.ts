import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { StoreRefused } from '../../engine/store.ts'

export interface Migration {
  version: number
  name: string
  sha256: string
  text: string
}

export type Applied = Pick<Migration, 'version' | 'name' | 'sha256'>

/**
 * Recorded as an applied migration during a copy. No version serves half a copy, because this looks like a migration of
 * a far later version.
 */
export const COPYING = 'copying'
export const COPYING_VERSION = 1_000_000_000

export function readMigrations(folder: string): Migration[] {
  const files = readdirSync(folder)
    .filter((file) => file.endsWith('.sql'))
    .sort()
  let last = 0
  return files.map((name) => {
    const version = Number.parseInt(name, 10)
    if (!(version > last)) throw new Error(`Each migration must have a number of its own: ${name}`)
    last = version
    const text = readFileSync(path.join(folder, name), 'utf8')
    return { version, name, sha256: hash('sha256', text), text }
  })
}

export const newestVersion = (migrations: readonly Pick<Migration, 'version'>[]): number =>
  migrations.at(-1)?.version ?? 0

export function checkApplied(applied: Applied[], known: Migration[]): void {
  if (applied.at(-1)?.name === COPYING) {
    throw new StoreRefused('A copy into this store has not finished. Run tacho copy again to finish it.')
  }
  for (const [index, { version, name, sha256 }] of applied.slice(0, known.length).entries()) {
    const expected = known[index]
    if (version !== expected?.version) {
      throw new StoreRefused(`The store's schema has a gap before migration ${version}.`)
    }
    if (sha256 !== expected.sha256) {
      throw new StoreRefused(
        `Another build of Tacho made this store: its migration ${name} is not the one of this version. ` +
          'The store is unchanged. Use that build, or move the data: export it there and import it into a new store.',
      )
    }
  }
  const newest = newestVersion(applied)
  if (newest > newestVersion(known)) {
    throw new StoreRefused(
      `The store has schema ${newest}, but this version of Tacho knows ${newestVersion(known)}. Use the newer version of Tacho.`,
    )
  }
}
