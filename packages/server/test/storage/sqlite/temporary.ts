import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TestContext } from 'node:test'
import { openSqliteStorage, type SqliteOptions } from '../../../src/storage/sqlite/open.ts'
import type { Storage } from '../../../src/storage/storage.ts'

/** A directory that is removed after the test. */
export function temporaryDirectory(t: TestContext): string {
  const directory = mkdtempSync(path.join(tmpdir(), 'tacho-sqlite-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** Opens a store that is closed after the test, even if the test fails. */
export async function openStore(t: TestContext, options: Partial<SqliteOptions> = {}): Promise<Storage> {
  const directory = options.directory ?? temporaryDirectory(t)
  const onTrouble = (error: Error) => {
    throw error
  }
  const storage = await openSqliteStorage({ directory, minFreeDiskBytes: 0, onTrouble, ...options })
  t.after(() => storage.close())
  return storage
}
