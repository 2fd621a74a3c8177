import type { Database } from './database.ts'

/** Runs `work` in one transaction: committed when it resolves, rolled back when it rejects. */
export async function transaction<Result>(
  db: Database,
  kind: 'read' | 'write',
  work: () => Result | Promise<Result>,
): Promise<Result> {
  db.exec(kind === 'write' ? 'BEGIN IMMEDIATE' : 'BEGIN')
  try {
    const result = await work()
    db.exec('COMMIT')
    return result
  } catch (error) {
    // SQLite has rolled back by itself after some errors, such as a full disk.
    if (db.inTransaction) db.exec('ROLLBACK')
    throw error
  }
}
