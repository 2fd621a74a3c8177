/** The database URL, for commands that open the database themselves. */
import { readConfig } from '@tacho/server/config/config.ts'
import { wrongUsage } from '../engine/stop.ts'

/** The flag, or TACHO_DATABASE_URL, or the file in TACHO_DATABASE_URL_FILE, as in `tacho serve`. */
export function readDatabaseUrl(given?: string): string {
  const url = findDatabaseUrl(given)
  if (url !== null) return url
  throw wrongUsage('No database given: set TACHO_DATABASE_URL or --database-url.')
}

/** Null: no database given, so use the embedded store. */
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
