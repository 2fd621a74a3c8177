import path from 'node:path'
import { ROOT } from '../../program/program.ts'
import { checkApplied, readMigrations, type Applied, type Migration } from '../sql/engine/migrations.ts'
import { StoreRefused } from '../engine/store.ts'
import type Database from 'better-sqlite3'
import { APPLICATION_ID } from './database.ts'

export function knownMigrations(): Migration[] {
  return readMigrations(path.join(ROOT, 'packages/server/src/storage/sqlite/migrations'))
}

export function migrate(db: Database.Database, migrations: Migration[] = knownMigrations()): void {
  const apply = db.transaction(() => {
    const applied = appliedMigrations(db)
    checkApplied(applied, migrations)
    if (applied.length === 0) create(db)
    const record = db.prepare('INSERT INTO migrations (version, name, sha256, applied_at) VALUES (?, ?, ?, ?)')
    for (const { version, name, sha256, text } of migrations.slice(applied.length)) {
      db.exec(text)
      record.run(version, name, sha256, Date.now())
    }
  })
  apply.exclusive()
}

function create(db: Database.Database): void {
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

export function appliedMigrations(db: Database.Database): Applied[] {
  if (db.pragma('application_id', { simple: true }) !== APPLICATION_ID) return []
  return db.prepare<[], Applied>('SELECT version, name, sha256 FROM migrations ORDER BY version').all()
}
