/**
 * Stores of former schemas, as the SQL of their rows. Migrations, which never change, create their tables.
 * Each migration that changes what a store holds gets a store of the schema before it: see write.ts.
 */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import pg from 'pg'
import { APPLICATION_ID, STORE_FILE } from '../../../src/storage/sqlite/database.ts'
import * as postgres from '../../../src/storage/postgres/migrate.ts'
import * as sqlite from '../../../src/storage/sqlite/migrate.ts'

export type Engine = 'sqlite' | 'postgres'

export interface FormerStore {
  engine: Engine
  /** Number of the newest migration in the store. */
  schema: number
  rows: string
}

export const FOLDER = import.meta.dirname

export function formerStores(engine: Engine): FormerStore[] {
  const files = readdirSync(FOLDER).filter((file) => file.startsWith(`${engine}-`) && file.endsWith('.sql'))
  return files.sort().map((file) => ({
    engine,
    schema: Number(/\d+/.exec(file)?.[0]),
    rows: readFileSync(path.join(FOLDER, file), 'utf8'),
  }))
}

/** Number of rows in each table, counted in the statements. */
export function rowCounts({ rows }: FormerStore): Map<string, number> {
  const counts = new Map<string, number>()
  for (const [, table = ''] of rows.matchAll(/^INSERT INTO (\w+) /gm)) counts.set(table, (counts.get(table) ?? 0) + 1)
  return counts
}

export function makeFile({ schema, rows }: FormerStore, directory: string): void {
  const db = new Database(path.join(directory, STORE_FILE))
  db.pragma('foreign_keys = OFF')
  sqlite.migrate(db, sqlite.knownMigrations().slice(0, schema))
  db.pragma(`application_id = ${APPLICATION_ID}`)
  // The statements contain the rows that migrations add, and the migrations' checksums.
  for (const table of tablesOf(db)) db.exec(`DELETE FROM ${table}`)
  db.exec(rows)
  db.close()
}

export function tablesOf(db: Database.Database): string[] {
  return db
    .prepare<[], string>(
      `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'search_words%' ORDER BY name`,
    )
    .pluck()
    .all()
}

/** Creates the store in an empty database. */
export async function makeDatabase({ schema, rows }: FormerStore, url: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    await postgres.migrate(client, postgres.knownMigrations().slice(0, schema))
    // Switch off foreign keys, because the rows are in any order.
    await client.query('SET session_replication_role = replica')
    const { rows: tables } = await client.query<{ name: string }>(
      "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'tacho'",
    )
    for (const { name } of tables) await client.query(`DELETE FROM tacho.${name}`)
    await client.query(rows)
  } finally {
    await client.end()
  }
}
