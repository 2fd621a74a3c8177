/** The suite on the oldest supported release, if this machine has it. */
import { after, before, describe, test } from 'node:test'
import { whyMissing } from '../../setup/postgres-binaries.ts'
import { databasesOf, startPostgres, type PostgresServer, type TestDatabases } from '../../setup/postgres-server.ts'
import { conformanceSuite } from '../suite/all.ts'
import { forSqlOnly } from '../suite/open.ts'
import { opensIn } from './open-store.ts'

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

  conformanceSuite(forSqlOnly(opensIn(() => databases)))
}
