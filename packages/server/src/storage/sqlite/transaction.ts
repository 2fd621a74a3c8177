import type { Database } from './database.ts'

/** Runs `work` in one transaction. Ends it with `end` if the work resolves, and rolls back if it rejects. */
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
    if (db.inTransaction) db.exec('ROLLBACK')
    throw error
  }
}
