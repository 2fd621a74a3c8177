/** The migrated store of tests, on SQLite. New stores are copies of it, because all migrations take a third of a start. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** Variable with the file of the store that the processes of a test run share. The first process that needs it writes it. */
export const SHARED_STORE = 'TEST_STORE'
const STORE_FILE = 'tacho.db'

let migrated: Promise<Buffer> | null = null

/** Puts a store with tables but no rows into the directory, unless the directory already contains something. */
export async function placeStore(directory: string): Promise<void> {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  if (readdirSync(directory).length > 0) return
  writeFileSync(path.join(directory, STORE_FILE), await (migrated ??= readOrCreate()), { mode: 0o600 })
}

async function readOrCreate(): Promise<Buffer> {
  const shared = process.env[SHARED_STORE]
  if (shared === undefined) return create()
  try {
    return readFileSync(shared)
  } catch {
    const created = await create()
    // Rename it at the end, so that no process uses an incomplete one.
    writeFileSync(`${shared}.${process.pid}`, created)
    renameSync(`${shared}.${process.pid}`, shared)
    return created
  }
}

async function create(): Promise<Buffer> {
  // Imported here, because most processes only read a store that another one created.
  const { openDatabase } = await import('../../src/storage/sqlite/database.ts')
  const { migrate } = await import('../../src/storage/sqlite/migrate.ts')
  const folder = mkdtempSync(path.join(os.tmpdir(), 'tacho-migrated-'))
  try {
    const file = path.join(folder, STORE_FILE)
    const db = openDatabase(file)
    migrate(db)
    db.close()
    return readFileSync(file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}
