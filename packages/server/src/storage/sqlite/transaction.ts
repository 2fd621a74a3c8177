import type { Database } from './database.ts'

/** Runs `work` in one transaction: ended as given when it resolves, rolled back when it rejects. */
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
    // SQLite has rolled back by itself after some errors, such as a full disk.
    if (db.inTransaction) db.exec('ROLLBACK')
    throw error
  }
}
