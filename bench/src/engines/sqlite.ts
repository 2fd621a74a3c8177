/** The embedded engine. */
import { mkdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { STORE_FILE } from '@tacho/server/storage/sqlite/database.ts'
import { openSqliteStorage } from '@tacho/server/storage/sqlite/open.ts'
import { withSql } from '../bare/sql.ts'
import type { Setting } from '../benchmark.ts'
import { startServer } from '../server.ts'
import type { Engine, Store } from './engine.ts'

const FREE = 'SELECT freelist_count * page_size AS "freeBytes" FROM pragma_freelist_count, pragma_page_size'

export function openSqlite({ place }: Setting): Engine {
  return {
    name: 'sqlite',
    createStore: async (name) => sqliteStore(path.join(place, name)),
    ways: { events: 'insert' },
    [Symbol.asyncDispose]: async () => undefined,
  }
}

function sqliteStore(directory: string): Store {
  mkdirSync(directory, { recursive: true })
  const at = { file: path.join(directory, STORE_FILE) }
  return {
    at,
    start: (flags, options) => startServer(directory, flags, options),
    open: () => {
      const onTrouble = (error: Error) => {
        throw error
      }
      return openSqliteStorage({ directory, minFreeDiskBytes: 0, onTrouble })
    },
    async size() {
      const free = await withSql(at, (sql) => sql.get<{ freeBytes: number }>(FREE))
      return { bytes: statSync(at.file).size, freeBytes: free?.freeBytes ?? null }
    },
  }
}
