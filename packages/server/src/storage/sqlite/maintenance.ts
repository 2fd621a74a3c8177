/** A thread for one long task on its own connection, so that neither writes nor reads wait for it. */
import { parentPort, workerData } from 'node:worker_threads'
import { checkPayloads, payloadsCheck } from '../sql/damage.ts'
import type { StoreCheck } from '../store.ts'
import { openDatabase, type Database } from './database.ts'
import { storageError } from './errors.ts'
import { sentError, type SentError } from './messages.ts'
import { sqliteSql } from './sql.ts'
import { transaction } from './transaction.ts'

/** `check` resolves to JSON of FileChecked. */
export type Task = { task: 'backup'; file: string; target: string } | { task: 'check'; file: string }

export interface FileChecked {
  /** From SQLite's integrity check: 'ok', or a fault. */
  structure: string
  payloads: StoreCheck | null
}

export type TaskReply = { result: string } | { error: SentError }

async function perform(task: Task): Promise<string> {
  const db = openDatabase(task.file, { readonly: true })
  try {
    // VACUUM INTO reads one snapshot in one step; an online backup restarts with every commit.
    if (task.task === 'backup') db.prepare('VACUUM INTO ?').run(task.target)
    return task.task === 'backup' ? 'ok' : JSON.stringify(await check(db))
  } finally {
    db.close()
  }
}

/** Not the quick check, which compares no index with its table. */
async function check(db: Database): Promise<FileChecked> {
  const structure = db.prepare('PRAGMA integrity_check(1)').pluck().get() as string
  const sql = sqliteSql(db)
  const payloads = await checkPayloads((work) => transaction(db, 'read', () => work(sql))).then(
    payloadsCheck,
    (error: unknown) => {
      if (storageError(error) === error) throw error
      return null
    },
  )
  return { structure, payloads }
}

function reply(message: TaskReply) {
  parentPort?.postMessage(message)
}

try {
  reply({ result: await perform(workerData as Task) })
} catch (error) {
  reply({ error: sentError(storageError(error)) })
}
