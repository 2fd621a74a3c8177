import type { Changes } from './acknowledged.ts'
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
      // The first error says what is wrong.
    }
    throw error
  }
}
