/** Opens the store for commands that need no server: chooses it, runs an operation on it, and prints its counts. */
import type { Command } from 'commander'
import type * as offlineModule from '@tacho/server/maintenance/offline.ts'
import { settingTexts, readConfig } from '@tacho/server/config/config.ts'
import { failed, wrongUsage } from '../engine/stop.ts'
import { counted, spokenNumber } from '../engine/output.ts'

/** Runs an offline operation on a store; expected failures become a sentence. */

type Offline = typeof offlineModule

export async function storeAct<Result>(act: (offline: Offline) => Promise<Result> | Result): Promise<Result> {
  const offline = await import('@tacho/server/maintenance/offline.ts')
  try {
    return await act(offline)
  } catch (error) {
    if (error instanceof offline.StoreRefused) throw failed(error.message)
    const { code, path } = error as NodeJS.ErrnoException
    if (code !== undefined && path !== undefined) throw failed(`${JSON.stringify(path)} cannot be used (${code}).`)
    throw error
  }
}

/** The data directory, for commands that need the embedded store for themselves. */

export interface DataDirOptions {
  dataDir?: string
}

const [SETTING] = settingTexts().filter(({ name }) => name === 'dataDir')
const DEFAULT = SETTING?.byDefault ?? './data'

export function withDataDir(command: Command): Command {
  return command.option('--data-dir <directory>', `directory of the store (TACHO_DATA_DIR; default ${DEFAULT})`)
}

/** The data directory as in `tacho serve`: an empty variable counts as unset. */
export function readDataDir({ dataDir }: DataDirOptions): string {
  if (dataDir === '') throw wrongUsage('--data-dir must not be empty.')
  return dataDir ?? (process.env['TACHO_DATA_DIR'] || DEFAULT)
}

/** The database URL, for commands that open the database themselves. */

/** The database URL as in `tacho serve`: the flag, TACHO_DATABASE_URL, or the file in TACHO_DATABASE_URL_FILE. */
export function readDatabaseUrl(databaseUrl?: string): string {
  const url = findDatabaseUrl(databaseUrl)
  if (url !== null) return url
  throw wrongUsage('No database given: set TACHO_DATABASE_URL or --database-url.')
}

/** The database URL; null: none is given, so the command uses the embedded store. */
export function findDatabaseUrl(databaseUrl?: string): string | null {
  if (databaseUrl === '') throw wrongUsage('--database-url must not be empty.')
  if (databaseUrl !== undefined) return databaseUrl
  const environment = Object.fromEntries(
    ['TACHO_DATABASE_URL', 'TACHO_DATABASE_URL_FILE'].map((name) => [name, process.env[name]]),
  )
  const read = readConfig({}, environment)
  if (!read.ok) throw wrongUsage(read.faults.join(' '))
  return read.config.databaseUrl
}

/** Counts of a backup or a restored store, as text. */
export function countsText({
  runs,
  events,
  policies,
  people,
}: Record<'runs' | 'events' | 'policies' | 'people', number>): string {
  const parts = [
    counted(runs, 'run'),
    counted(events, 'event'),
    policies === 1 ? '1 policy' : `${spokenNumber(policies)} policies`,
  ]
  const folk = people === 1 ? '1 person' : `${spokenNumber(people)} people`
  return `${parts.join(', ')} and ${folk}`
}
