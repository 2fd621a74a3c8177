import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { dataTables } from '../../../src/storage/postgres/migrate.ts'
import { testDatabases, type TestDatabases } from '../../setup/postgres-server.ts'
import { opensIn } from './open-store.ts'
import { faultOf, insertsFromTable, isMigration, recordTransactions, tenantFaultOf, tenantsOf } from './rules.ts'
import { conformanceSuite } from '../suite/all.ts'

const sent = recordTransactions()
let databases: TestDatabases
before(async () => {
  databases = await testDatabases()
})
after(() => databases.close())

conformanceSuite(opensIn(() => databases))

/** The statements that the engine sent during the suites above. */
describe('every statement', () => {
  let tables: string[]
  before(async () => {
    const { url, drop } = await databases.create()
    const client = new pg.Client(url)
    await client.connect()
    tables = await dataTables(client)
    await client.end()
    await drop()
  })

  test('of a data table names the environment of each row it touches', () => {
    const faults = sent.flat().flatMap((one) => {
      const fault = faultOf(one, tables)
      return fault === null ? [] : [`${fault}: ${one.text}`]
    })
    assert.deepEqual([...new Set(faults)], [])
    assert.ok(sent.length > 1_000)
  })

  test('of a control table names the workspace or environment whose rows it touches', () => {
    const ours = sent.filter((transaction) => !isMigration(transaction))
    const faults = ours.flat().flatMap((one) => {
      const fault = tenantFaultOf(one)
      return fault === null ? [] : [`${fault}: ${one.text}`]
    })
    assert.deepEqual([...new Set(faults)], [])
  })

  test('that stores events takes its rows from its parameters, not from a table', () => {
    const hot = sent
      .flat()
      .filter(({ text }) => /^(INSERT INTO|COPY) (events|runs|models|usage_hours|rejections)\b/.test(text))
    assert.ok(hot.length > 1_000)
    assert.deepEqual(new Set(hot.filter((one) => insertsFromTable(one, tables)).map(({ text }) => text)), new Set())
  })

  test('of a transaction uses the data of one tenant', () => {
    const mixed = sent.filter((transaction) => tenantsOf(transaction, tables).size > 1)
    assert.deepEqual(mixed, [])
    assert.ok(sent.some((transaction) => tenantsOf(transaction, tables).size === 1))
  })
})
