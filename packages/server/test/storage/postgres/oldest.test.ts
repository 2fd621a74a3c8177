/** The suite on the oldest supported release, if this machine has it. */
import { after, before, describe, test } from 'node:test'
import { openPostgresStorage } from '../../../src/storage/postgres/open.ts'
import { whyMissing } from '../../setup/postgres-binaries.ts'
import {
  changeDatabase,
  databasesOf,
  startPostgres,
  type PostgresServer,
  type TestDatabases,
} from '../../setup/postgres-server.ts'
import { conformanceSuite } from '../suite/all.ts'
import type { OpenStorage } from '../suite/open.ts'

const missing = whyMissing('oldest')

if (missing === null) describe('PostgreSQL 15', onOldest)
else test('PostgreSQL 15', { skip: missing })

function onOldest(): void {
  let server: PostgresServer
  let databases: TestDatabases
  before(async () => {
    server = await startPostgres({ release: 'oldest' })
    databases = databasesOf(server.url())
  })
  after(() => server.close())

  const open: OpenStorage = async () => {
    const { url, drop } = await databases.create()
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
  conformanceSuite(open)
}
