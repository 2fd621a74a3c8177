import path from 'node:path'
import { copyStore, type CopyReport, type CopyWatch } from '../storage/copy/copy-store.ts'
import type { Source, Target } from '../storage/copy/side.ts'
import { StoreRefused } from '../storage/engine/store.ts'
import { parseAddress } from '../storage/postgres/connections.ts'
import { knownMigrations, distributeStore, prepareStore } from '../storage/postgres/migrate.ts'
import { newestVersion } from '../storage/sql/engine/migrations.ts'

export { StoreRefused, type CopyReport }

export interface CopyOptions extends CopyWatch {
  /** `from` and `to`: `sqlite:<directory>` or `postgres://…`. */
  from: string
  to: string
  /** Changes stored after the copy starts are not copied. */
  whileRunning?: boolean
}

export async function copy({ from, to, whileRunning = false, ...watch }: CopyOptions): Promise<CopyReport> {
  const [source, target] = [parsePlace(from), parsePlace(to)]
  if (from === to || (source.directory !== null && source.directory === target.directory)) {
    throw new StoreRefused('The source and the target must be different stores.')
  }
  const opened = await openSource(source, whileRunning, watch.otherBuild)
  try {
    const into = await openTarget(target)
    try {
      return await copyStore(opened, into, watch)
    } finally {
      await into.close()
    }
  } finally {
    await opened.close()
  }
}

interface Place {
  directory: string | null
  url: string
}

function parsePlace(placeText: string): Place {
  if (/^postgres(ql)?:\/\//.test(placeText)) return { directory: null, url: placeText }
  const directory = /^sqlite:(.+)$/s.exec(placeText)?.[1]
  if (directory !== undefined) return { directory: path.resolve(directory), url: '' }
  throw new StoreRefused(`A store must be sqlite:<directory> or postgres://…, not ${JSON.stringify(placeText)}.`)
}

const postgres = () => import('../storage/copy/postgres-side.ts')
const sqlite = () => import('../storage/copy/sqlite-side.ts')

async function openSource({ directory, url }: Place, whileRunning: boolean, otherBuild = false): Promise<Source> {
  if (directory === null) return (await postgres()).openPostgresSource(url, whileRunning)
  return (await sqlite()).openSqliteSource(directory, otherBuild)
}

async function openTarget({ directory, url }: Place): Promise<Target> {
  return directory === null ? (await postgres()).openPostgresTarget(url) : (await sqlite()).openSqliteTarget(directory)
}

export interface MigrateOptions {
  databaseUrl: string
  citus?: boolean
}

export interface Migrated {
  database: string
  schema: number
  /** Names of the applied migrations. Empty if another process was faster. */
  applied: string[]
  distributed: string[] | null
}

const WAIT_MS = 10_000

/**
 * You can repeat it, interrupt it, and run it on several machines at once. Throws StoreRefused with a message for
 * people.
 */
export async function migrateStore({ databaseUrl, citus = false }: MigrateOptions): Promise<Migrated> {
  const address = parseAddress(databaseUrl)
  const applied = await prepareStore(address, WAIT_MS)
  const distributed = citus ? await distributeStore(databaseUrl, WAIT_MS) : null
  return { database: address.shown, schema: newestVersion(knownMigrations()), applied, distributed }
}
