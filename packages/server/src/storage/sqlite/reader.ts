import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { collectWhenIdle } from '../../threads/threads.ts'
import { runAct } from '../sql/acts.ts'
import type { DamagedPayload, DamagedRow, Sql } from '../sql/engine/sql.ts'
import type { BackupCounts, StoreCheck } from '../engine/store.ts'
import { openDatabase, sqliteSql } from './database.ts'
import { storageError } from './errors.ts'
import { sentError, type Call, type Replies } from './thread.ts'
import { countRows } from './backup.ts'
import { transaction } from './transaction.ts'
import { checkSettings, checkPayloads, type PayloadsChecked, type Snapshot } from '../sql/engine/checksum-checks.ts'

/** Less than the writer's cache: pages are seldom read again soon, and each reader has its own cache. */
const CACHE_KIB = 8_192

if (parentPort === null) throw new Error('reader.ts runs as a worker thread')
const port = parentPort
const db = openDatabase((workerData as { file: string }).file, { readonly: true, cacheKib: CACHE_KIB })
const damaged: (DamagedPayload | DamagedRow)[] = []
const sql = sqliteSql(db, (damagedThing) => damaged.push(damagedThing))
collectWhenIdle()

port.on('message', (call: Call) => void answer(call))

// Calls do not overlap, because everything that an act awaits is already resolved.
async function answer(call: Call): Promise<void> {
  let replies: Replies
  try {
    replies = { replies: [{ id: call.id, result: await perform(call) }] }
  } catch (error) {
    replies = { replies: [{ id: call.id, error: sentError(storageError(error)) }] }
  }
  port.postMessage({ ...replies, damaged: damaged.splice(0) })
  if (call.act === 'close') port.close()
}

async function perform({ act, args }: Call): Promise<unknown> {
  if (act === 'appendEvents' || act === 'durability') throw new Error(`${act} is for the writer`)
  if (act === 'close') return void db.close()
  if (act === 'ping') return db.prepare('SELECT 1').get()
  // VACUUM INTO reads one snapshot in one step; an online backup restarts with every commit.
  if (act === 'backup') return backUp(String(args[0]))
  if (act === 'check') return checkFile(db, sqliteSql(db), args[0] as FileSlice | null)
  return transaction(db, 'read', () => runAct(sql, act, args))
}

function backUp(target: string): BackupCounts {
  db.prepare('VACUUM INTO ?').run(target)
  // Counts the snapshot, because the store has changed since.
  const copy = new Database(target, { readonly: true })
  try {
    return countRows(copy)
  } finally {
    copy.close()
  }
}

/** A part of a large file: the payloads after `done`, for `budgetMs`. */
export interface FileSlice {
  done: PayloadsChecked
  budgetMs: number
}

export interface FileChecked {
  /** Null: not checked, because the file is large. */
  structure: string | null
  /** Null: the payloads cannot be read. `configuration` is null for the same reason. */
  payloads: PayloadsChecked | null
  configuration: StoreCheck | null
}

/** Runs the full check: the quick check does not compare indexes with their tables. */
async function checkFile(db: Database.Database, sql: Sql, slice: FileSlice | null): Promise<FileChecked> {
  const structure = slice === null ? (db.prepare('PRAGMA integrity_check(1)').pluck().get() as string) : null
  const snapshot: Snapshot = (work) => transaction(db, 'read', () => work(sql))
  const configuration = await readable(checkSettings(snapshot))
  return { structure, configuration, payloads: await readable(checkPayloads(snapshot, slice?.done, slice?.budgetMs)) }
}

/** Null instead of an error if the rows cannot be read. */
async function readable<Result>(check: Promise<Result>): Promise<Result | null> {
  try {
    return await check
  } catch (error) {
    if (storageError(error) === error) throw error
    return null
  }
}
