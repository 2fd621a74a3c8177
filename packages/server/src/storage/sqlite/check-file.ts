import { checkPayloads, payloadsCheck } from '../sql/damage.ts'
import type { Sql } from '../sql/sql.ts'
import type { StoreCheck } from '../store.ts'
import type { Database } from './database.ts'
import { storageError } from './errors.ts'
import { transaction } from './transaction.ts'

export interface FileChecked {
  structure: string
  /** Null: they cannot be read. */
  payloads: StoreCheck | null
}

/** Not the quick check, which compares no index with its table. */
export async function checkFile(db: Database, sql: Sql): Promise<FileChecked> {
  const structure = db.prepare('PRAGMA integrity_check(1)').pluck().get() as string
  const payloads = await checkPayloads((work) => transaction(db, 'read', () => work(sql))).then(
    payloadsCheck,
    (error: unknown) => {
      if (storageError(error) === error) throw error
      return null
    },
  )
  return { structure, payloads }
}
