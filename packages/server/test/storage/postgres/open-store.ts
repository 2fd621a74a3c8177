/** Opens each store of the conformance suite in a database of its own. */
import { openPostgresStorage } from '../../../src/storage/postgres/open.ts'
import { changeDatabase, type TestDatabases } from '../../setup/postgres-server.ts'
import type { OpenStorage } from '../suite/open.ts'

export function opensIn(databases: () => Pick<TestDatabases, 'create'>): OpenStorage {
  return async () => {
    const { url, drop } = await databases().create()
    const storage = await openPostgresStorage({ url })
    return {
      storage,
      change: (text, environmentId) => changeDatabase(url, text, environmentId),
      async close() {
        await storage.close()
        await drop()
      },
    }
  }
}
