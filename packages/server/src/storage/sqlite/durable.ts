import type Database from 'better-sqlite3'

export function assertDurable(db: Database.Database): void {
  // Only a write proves it: before the first one, better-sqlite3 may report a setting it does not keep.
  db.prepare('UPDATE control SET revision = revision WHERE id = 1').run()
  const { synchronous, mode } = durability(db)
  if (synchronous !== 2 || mode !== 'wal') {
    throw new Error(`The store would not be durable: synchronous=${synchronous}, journal_mode=${mode}`)
  }
}

export type Durability = ReturnType<typeof durability>

export function durability(db: Database.Database) {
  return {
    synchronous: db.pragma('synchronous', { simple: true }) as number,
    mode: db.pragma('journal_mode', { simple: true }) as string,
  }
}
