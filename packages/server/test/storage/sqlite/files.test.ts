import assert from 'node:assert/strict'
import { chmodSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { openSqliteStorage } from '../../../src/storage/sqlite/open.ts'
import { restoreSqlite } from '../../../src/storage/sqlite/backup.ts'
import { temporaryDirectory } from './temporary.ts'

const options = { minFreeDiskBytes: 0, onTrouble: (error: Error) => assert.fail(error) }

/** Files of a directory that users other than the owner may read or write. */
function openToOthers(directory: string): string[] {
  return readdirSync(directory).filter((name) => (statSync(path.join(directory, name)).mode & 0o077) !== 0)
}

test(
  'the files of a store are its owner’s alone, in a directory that others may enter too',
  { skip: process.platform === 'win32' },
  async (t) => {
    const directory = temporaryDirectory(t)
    chmodSync(directory, 0o755)
    for (const name of ['tacho.db', 'tacho.lock']) {
      writeFileSync(path.join(directory, name), '')
      chmodSync(path.join(directory, name), 0o644)
    }
    const storage = await openSqliteStorage({ ...options, directory })
    assert.ok(readdirSync(directory).includes('tacho.db-wal'))
    assert.deepEqual(openToOthers(directory), [])
    const backups = temporaryDirectory(t)
    await storage.backup(path.join(backups, 'backup.db'))
    await storage.close()
    assert.deepEqual(openToOthers(backups), [])
    chmodSync(path.join(backups, 'backup.db'), 0o644)
    restoreSqlite({ from: path.join(backups, 'backup.db'), directory, replace: true })
    assert.deepEqual(openToOthers(directory), [])
  },
)
