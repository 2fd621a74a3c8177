/** Brings a database to the schema of this version ahead of a deployment, on Citus distributed. */
import { parseAddress } from '../storage/postgres/address.ts'
import { knownMigrations } from '../storage/postgres/migrate.ts'
import { distributeStore, prepareStore } from '../storage/postgres/prepare.ts'
import { StoreRefused } from '../storage/storage.ts'

export { StoreRefused }

export interface MigrateOptions {
  databaseUrl: string
  /** Spread the tables over the machines of a Citus cluster, too. */
  citus?: boolean
}

export interface Migrated {
  /** Host, port and name, without user and password. */
  database: string
  /** Number of the newest migration. */
  schema: number
  /** Names of the migrations that were due; none where somebody else was quicker. */
  applied: string[]
  /** Tables that were distributed now; null where that was not asked for. */
  distributed: string[] | null
}

const WAIT_MS = 10_000

/** Safe at any time, and from several machines at once. Throws StoreRefused, whose message is for people. */
export async function migrateStore({ databaseUrl, citus = false }: MigrateOptions): Promise<Migrated> {
  const address = parseAddress(databaseUrl)
  const applied = await prepareStore(address, WAIT_MS)
  const distributed = citus ? await distributeStore(databaseUrl, WAIT_MS) : null
  return { database: address.shown, schema: knownMigrations().length, applied, distributed }
}
