import { checkSettings, checkPayloads, type PayloadsChecked, type Snapshot } from '../sql/engine/damage.ts'
import type { Sql } from '../sql/engine/sql.ts'
import type { StoreCheck } from '../engine/store.ts'
import type { Database } from './database.ts'
import { storageError } from './errors.ts'
import { transaction } from './transaction.ts'

/** A part of a large file: the payloads after those of `done`, for `budgetMs`. */
export interface FileSlice {
  done: PayloadsChecked
  budgetMs: number
}

export interface FileChecked {
  /** Null: not checked, because the file is large. */
  structure: string | null
  /** Null: they cannot be read. The same is true of the configuration. */
  payloads: PayloadsChecked | null
  configuration: StoreCheck | null
}

/** Not the quick check, which compares no index with its table. */
export async function checkFile(db: Database, sql: Sql, slice: FileSlice | null): Promise<FileChecked> {
  const structure = slice === null ? (db.prepare('PRAGMA integrity_check(1)').pluck().get() as string) : null
  const snapshot: Snapshot = (work) => transaction(db, 'read', () => work(sql))
  const configuration = await readable(checkSettings(snapshot))
  return { structure, configuration, payloads: await readable(checkPayloads(snapshot, slice?.done, slice?.budgetMs)) }
}

/** Null: the rows cannot be read. */
async function readable<Result>(check: Promise<Result>): Promise<Result | null> {
  try {
    return await check
  } catch (error) {
    if (storageError(error) === error) throw error
    return null
  }
}
