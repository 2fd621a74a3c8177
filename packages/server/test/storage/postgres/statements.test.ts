import { after, before } from 'node:test'
import pg from 'pg'
import { parseAddress, clientConfig, SCHEMA } from '../../../src/storage/postgres/connections.ts'
import { postgresSql } from '../../../src/storage/postgres/sql.ts'
import { testDatabases, type TestDatabase, type TestDatabases } from '../../setup/postgres-server.ts'
import { statementsSuite } from '../suite/engine/statements.ts'

let databases: TestDatabases
let database: TestDatabase
let client: pg.Client
before(async () => {
  databases = await testDatabases()
  database = await databases.create()
  const timeouts = { connectMs: 60_000, statementMs: 60_000, lockMs: 60_000, idleInTransactionMs: 60_000 }
  client = new pg.Client(clientConfig(parseAddress(database.url).config, timeouts))
  await client.connect()
  // Run everything in one transaction, so that the counts do not depend on the disk.
  await client.query(`SET search_path = ${SCHEMA}; BEGIN`)
})
after(async () => {
  await client.end()
  await database.drop()
  await databases.close()
})

statementsSuite(() => postgresSql(client))
