/**
 * Numbered SQL files, applied once each, in order. A store that differs from the known migrations is refused.
 *
 *   new store: all migrations in one transaction
 *   older store: those up to 010 in one --> rows are moved, transaction by transaction --> the others in one
 *
 * A process that dies leaves whole transactions, and the next start continues after them.
 */
import path from 'node:path'
import { ROOT } from '../../program/root.ts'
import { checkApplied, readMigrations, type Applied, type Migration, type MovedRows } from '../sql/migrations.ts'
import { StoreRefused } from '../storage.ts'
import { APPLICATION_ID, type Database } from './database.ts'
import { moveEvents } from './move-events.ts'

/** Every migration this version knows. */
export function knownMigrations(): Migration[] {
  return readMigrations(path.join(ROOT, 'packages/server/src/storage/sqlite/migrations'))
}

/** Applied once the rows of an older store have been moved. */
const AFTER_MOVE = 11

/** Migrates a store to the newest schema, or refuses it. */
export function migrate(db: Database, migrations: Migration[] = knownMigrations()): void {
  for (const _ of migrating(db, migrations)) continue
}

/** The same, step by step. Yields after each transaction that moved rows. */
export function* migrating(
  db: Database,
  migrations: Migration[] = knownMigrations(),
  rowsPerTransaction?: number,
): Generator<MovedRows> {
  const apply = db.transaction((end: number) => {
    const applied = appliedMigrations(db)
    checkApplied(applied, migrations)
    if (applied.length === 0) create(db)
    const record = db.prepare('INSERT INTO migrations (version, name, sha256, applied_at) VALUES (?, ?, ?, ?)')
    for (const { version, name, sha256, text } of migrations.slice(applied.length, end)) {
      db.exec(text)
      record.run(version, name, sha256, Date.now())
    }
  })
  const { length } = appliedMigrations(db)
  if (length > 0 && length < AFTER_MOVE) {
    apply.exclusive(AFTER_MOVE - 1)
    yield* moveEvents(db, rowsPerTransaction)
  }
  apply.exclusive(migrations.length)
}

function create(db: Database): void {
  if (db.prepare('SELECT 1 FROM sqlite_schema').get() !== undefined) {
    throw new StoreRefused(`${db.name} is another program's database, not a Tacho store.`)
  }
  db.pragma(`application_id = ${APPLICATION_ID}`)
  db.exec(`CREATE TABLE migrations (
    version INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    applied_at INTEGER NOT NULL
  ) STRICT`)
}

export function appliedMigrations(db: Database): Applied[] {
  if (db.pragma('application_id', { simple: true }) !== APPLICATION_ID) return []
  return db.prepare<[], Applied>('SELECT version, name, sha256 FROM migrations ORDER BY version').all()
}
