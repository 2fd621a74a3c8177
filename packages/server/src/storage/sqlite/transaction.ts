import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import type { Database } from './database.ts'

export async function counted<Result>(
  db: Database,
  changes: Changes,
  count: number,
  work: () => Result | Promise<Result>,
): Promise<Result> {
  const result = await transaction(db, 'write', async () => {
    const done = await work()
    changes.add(count)
    return done
  })
  changes.committed()
  return result
}

export async function transaction<Result>(
  db: Database,
  kind: 'read' | 'write',
  work: () => Result | Promise<Result>,
  end: 'commit' | 'rollback' = 'commit',
): Promise<Result> {
  db.exec(kind === 'write' ? 'BEGIN IMMEDIATE' : 'BEGIN')
  try {
    const result = await work()
    db.exec(end)
    return result
  } catch (error) {
    // SQLite rolls back on its own after some errors, such as a full disk.
    try {
      if (db.inTransaction) db.exec('ROLLBACK')
    } catch {
      // Throw the first error: it has the cause.
    }
    throw error
  }
}

/**
 * Detects a store that is older than its last acknowledgement: its write-ahead log was removed or cut, or it was replaced
 * by an older copy.
 *
 *   change --its number in the file's header--> committed --the same number in a file beside the store--> acknowledged
 *
 * Each event and each other write counts as one change. The file beside the store needs no sync: it is never ahead of the
 * store, and it survives a killed process. Numbers begin again after 2^32.
 */

export const acknowledgedFile = (file: string): string => `${file}-acknowledged`

/** SQLite stores this number for the application, on a page that it writes anyway while the file grows. */
const numberOf = (db: Database): number => db.pragma('user_version', { simple: true }) as number

export function missingChanges(db: Database, file: string): number {
  const acknowledged = Number.parseInt(readBeside(file), 10)
  return Number.isNaN(acknowledged) ? 0 : Math.max(0, (acknowledged - numberOf(db)) | 0)
}

function readBeside(file: string): string {
  try {
    return readFileSync(acknowledgedFile(file), 'utf8')
  } catch {
    return ''
  }
}

export type Changes = ReturnType<typeof countChanges>

/** Length of the longest number. Shorter ones are padded, so that each overwrites the one before. */
const CHARS = 12

export function countChanges(db: Database, file: string) {
  let number = numberOf(db)
  let next = number
  const beside = openBeside(file)
  return {
    /** Call this within the transaction. */
    add(count: number): void {
      next = (number + count) | 0
      db.exec(`PRAGMA user_version = ${next}`)
    },
    /** Call this after the commit, before it is acknowledged. */
    committed(): void {
      number = next
      if (beside === null) return
      try {
        writeSync(beside, `${String(number).padEnd(CHARS)}\n`, 0)
      } catch {
        // The commit itself succeeded. Without this number, the next start can detect less.
      }
    },
    close(): void {
      if (beside !== null) closeSync(beside)
    },
  }
}

function openBeside(file: string): number | null {
  try {
    closeSync(openSync(acknowledgedFile(file), 'a', 0o600))
    return openSync(acknowledgedFile(file), 'r+')
  } catch {
    return null
  }
}
