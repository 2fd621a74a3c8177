/** A thread for one long task on a separate connection, so that neither writes nor reads wait for it. */
import { parentPort, workerData } from 'node:worker_threads'
import { openDatabase, type Database } from './database.ts'
import { storageError } from './errors.ts'
import { sentError, type SentError } from './messages.ts'

/** `backup` copies a snapshot of the store into a new file. `check` resolves to the damage it found, or 'ok'. */
export type Task = { task: 'backup'; file: string; target: string } | { task: 'check'; file: string }

export type TaskReply = { result: string } | { error: SentError }

function perform(task: Task): string {
  const db = openDatabase(task.file, { readonly: true })
  try {
    // VACUUM INTO reads one snapshot in one step; an online backup restarts with every commit.
    if (task.task === 'backup') db.prepare('VACUUM INTO ?').run(task.target)
    return task.task === 'backup' ? 'ok' : quickCheck(db)
  } finally {
    db.close()
  }
}

function quickCheck(db: Database): string {
  return db.prepare('PRAGMA quick_check(1)').pluck().get() as string
}

function reply(message: TaskReply) {
  parentPort?.postMessage(message)
}

try {
  reply({ result: perform(workerData as Task) })
} catch (error) {
  reply({ error: sentError(storageError(error)) })
}
