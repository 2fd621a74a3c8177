/** Numbered SQL files, applied once each, in order. A store that differs from what the program knows is refused. */
import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { StoreRefused } from '../storage.ts'
import { APPLICATION_ID, type Database } from './database.ts'

export interface Migration {
  version: number
  name: string
  sha256: string
  text: string
}

interface Applied {
  version: number
  name: string
  sha256: string
}

const FOLDER = path.join(import.meta.dirname, 'migrations')

export function readMigrations(folder: string = FOLDER): Migration[] {
  const files = readdirSync(folder)
    .filter((file) => file.endsWith('.sql'))
    .sort()
  return files.map((name, index) => {
    const version = Number.parseInt(name, 10)
    if (version !== index + 1) throw new Error(`Migrations must be numbered without gaps: ${name}`)
    const text = readFileSync(path.join(folder, name), 'utf8')
    return { version, name, sha256: hash('sha256', text), text }
  })
}

/** Brings a store to the newest schema, or refuses it. All migrations that are due run in one transaction. */
export function migrate(db: Database, migrations: Migration[] = readMigrations()): void {
  db.transaction(() => {
    const applied = appliedMigrations(db)
    checkApplied(applied, migrations)
    if (applied.length === 0) create(db)
    const record = db.prepare('INSERT INTO migrations (version, name, sha256, applied_at) VALUES (?, ?, ?, ?)')
    for (const { version, name, sha256, text } of migrations.slice(applied.length)) {
      db.exec(text)
      record.run(version, name, sha256, Date.now())
    }
  }).exclusive()
}

function create(db: Database): void {
  if (db.prepare('SELECT 1 FROM sqlite_schema').get() !== undefined) {
    throw new StoreRefused(`${db.name} is a database of another program, not a Tacho store.`)
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

/** Refuses a store whose migrations are not a beginning of those the program knows. */
export function checkApplied(applied: Applied[], known: Migration[]): void {
  const newest = applied.at(-1)?.version ?? 0
  if (newest > known.length) {
    throw new StoreRefused(
      `The store has schema ${newest} and this version of Tacho knows ${known.length}; use the newer version of Tacho.`,
    )
  }
  applied.forEach(({ version, name, sha256 }, index) => {
    const expected = known[index]
    if (version !== index + 1) throw new StoreRefused(`The store's schema has a gap before migration ${version}.`)
    if (sha256 !== expected?.sha256) {
      throw new StoreRefused(`Migration ${name} of the store is not the one this version of Tacho knows.`)
    }
  })
}
