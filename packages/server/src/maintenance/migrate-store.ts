import { parseAddress } from '../storage/postgres/address.ts'
import { knownMigrations } from '../storage/postgres/migrate.ts'
import { distributeStore, prepareStore } from '../storage/postgres/prepare.ts'
import { newestVersion } from '../storage/sql/engine/migrations.ts'
import { StoreRefused } from '../storage/engine/store.ts'

export { StoreRefused }

export interface MigrateOptions {
  databaseUrl: string
  citus?: boolean
}

export interface Migrated {
  database: string
  schema: number
  /** Empty if another process was faster. */
  applied: string[]
  distributed: string[] | null
}

const WAIT_MS = 10_000

/** Can be repeated, interrupted, and run on several machines at once. Throws StoreRefused with a message for people. */
export async function migrateStore({ databaseUrl, citus = false }: MigrateOptions): Promise<Migrated> {
  const address = parseAddress(databaseUrl)
  const applied = await prepareStore(address, WAIT_MS)
  const distributed = citus ? await distributeStore(databaseUrl, WAIT_MS) : null
  return { database: address.shown, schema: newestVersion(knownMigrations()), applied, distributed }
}
