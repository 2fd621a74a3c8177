/** An error of a transaction is never hidden by the errors that follow from it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PoolClient } from 'pg'
import { parseAddress } from '../../../src/storage/postgres/address.ts'
import { openConnections } from '../../../src/storage/postgres/connections.ts'
import { createReachability } from '../../../src/storage/postgres/reachability.ts'
import { append, event, newId } from '../suite/sample.ts'
import { refusal, useTestDatabase } from './store-trouble.ts'

const { url, whileFailing, withStorage } = useTestDatabase()
const TIMEOUTS = { connectMs: 5_000, statementMs: 5_000, lockMs: 5_000, idleInTransactionMs: 5_000 }

/** The second statement, which the caller awaits first, fails because the first one did. */
const failing = (statement: string) => async (client: PoolClient) => {
  client.query(statement).catch(() => undefined)
  await client.query('SELECT 1')
}

test('the first error of a transaction is the one that its caller gets', async () => {
  const { config: address } = parseAddress(url())
  const reachability = createReachability(() => undefined)
  const connections = openConnections({ address, size: 1, timeouts: TIMEOUTS, reachability })
  try {
    for (const kind of ['transaction', 'snapshot'] as const) {
      await assert.rejects(connections[kind](failing('SELECT 1 / 0')), { code: '22012' })
      await assert.rejects(connections[kind](failing('SELECT no_such_column')), { code: '42703' })
      const shutDown = "DO $$ BEGIN RAISE EXCEPTION 'worker down' USING ERRCODE = '57P03'; END $$"
      await assert.rejects(connections[kind](failing(shutDown)), refusal('storage_unavailable'))
      const { rows } = await connections[kind]((client) => client.query<{ one: number }>('SELECT 1 AS one'))
      assert.deepEqual(rows, [{ one: 1 }])
    }
  } finally {
    await connections.end()
  }
})

test('a failed transaction whose first error is unknown may be tried again', async () => {
  await withStorage({}, async (storage) => {
    const env = newId()
    await whileFailing('events', '25P02', async () => {
      await assert.rejects(append(storage, env, event()), refusal('storage_unavailable'))
    })
    assert.deepEqual(await append(storage, env, event()), ['stored'])
  })
})
