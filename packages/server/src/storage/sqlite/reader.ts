import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { collectWhenIdle } from '../../threads/threads.ts'
import { runAct } from '../sql/acts.ts'
import type { DamagedPayload, DamagedRow } from '../sql/engine/sql.ts'
import type { BackupCounts } from '../engine/store.ts'
import { checkFile, type FileSlice } from './check-file.ts'
import { openDatabase } from './database.ts'
import { storageError } from './errors.ts'
import { sentError, type Call, type Replies } from './thread.ts'
import { countRows } from './backup.ts'
import { sqliteSql } from './sql.ts'
import { transaction } from './transaction.ts'

/** Less than the writer's: pages are seldom read again soon, and each reader has its own cache. */
const CACHE_KIB = 8_192

if (parentPort === null) throw new Error('reader.ts runs as a worker thread')
const port = parentPort
const db = openDatabase((workerData as { file: string }).file, { readonly: true, cacheKib: CACHE_KIB })
const damaged: (DamagedPayload | DamagedRow)[] = []
const sql = sqliteSql(db, (damagedThing) => damaged.push(damagedThing))
collectWhenIdle()

port.on('message', (call: Call) => void answer(call))

// Everything an act awaits is already resolved, so calls do not overlap.
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
  // Counts the snapshot, because the store has gone on.
  const copy = new Database(target, { readonly: true })
  try {
    return countRows(copy)
  } finally {
    copy.close()
  }
}
