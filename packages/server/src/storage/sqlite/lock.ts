/** Node has no flock, and pids are ambiguous across containers, so the process keeps a lock database open. */
import path from 'node:path'
import Database from 'better-sqlite3'
import { StoreRefused } from '../engine/store.ts'
import { keepPrivate } from './files.ts'

const LOCK_FILE = 'tacho.lock'

/** Returns the function that unlocks the directory. So does the end of the process. */
export function lockStore(directory: string): () => void {
  const file = path.join(directory, LOCK_FILE)
  keepPrivate(file)
  const db = new Database(file, { timeout: 0 })
  try {
    db.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    db.close()
    if (!(error instanceof Database.SqliteError) || !error.code.startsWith('SQLITE_BUSY')) throw error
    throw new StoreRefused(`The store in ${directory} is open in another process. Stop that process first.`)
  }
  return () => db.close()
}
