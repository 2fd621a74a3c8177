import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import { openSqliteStorage } from '../../../src/storage/sqlite/open.ts'
import { placeStore } from '../../setup/migrated-store.ts'
import { conformanceSuite } from '../suite/all.ts'
import type { OpenStorage } from '../suite/open.ts'

const open: OpenStorage = async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'tacho-suite-'))
  await placeStore(directory)
  const onTrouble = (error: Error) => {
    throw error
  }
  const storage = await openSqliteStorage({ directory, minFreeDiskBytes: 0, onTrouble })
  return {
    storage,
    async change(text, environmentId) {
      const db = new Database(path.join(directory, 'tacho.db'))
      db.prepare(text).run(environmentId)
      db.close()
    },
    async close() {
      await storage.close()
      await rm(directory, { recursive: true })
    },
  }
}

conformanceSuite(open)
