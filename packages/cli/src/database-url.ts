/** The address of a database for the commands that act on it. A password is better kept out of the arguments. */
import { readConfig } from '@tacho/server/config/config.ts'
import { wrongUsage } from './stop.ts'

/** A flag, else TACHO_DATABASE_URL or what TACHO_DATABASE_URL_FILE names, as `tacho serve` reads them. */
export function readDatabaseUrl(given?: string): string {
  const url = findDatabaseUrl(given)
  if (url !== null) return url
  throw wrongUsage('Which database? Set TACHO_DATABASE_URL, or name it with --database-url.')
}

/** Null: no database is named, so the embedded store is meant. */
export function findDatabaseUrl(given?: string): string | null {
  if (given === '') throw wrongUsage('--database-url must not be empty.')
  if (given !== undefined) return given
  const environment = Object.fromEntries(
    ['TACHO_DATABASE_URL', 'TACHO_DATABASE_URL_FILE'].map((name) => [name, process.env[name]]),
  )
  const read = readConfig({}, environment)
  if (!read.ok) throw wrongUsage(read.faults.join(' '))
  return read.config.databaseUrl
}
