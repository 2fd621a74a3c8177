/** The first error of a transaction is reported, not the errors that follow from it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PoolClient } from 'pg'
import { parseAddress, openConnections } from '../../../src/storage/postgres/connections.ts'
import { createReachability } from '../../../src/storage/postgres/reachability.ts'
import { NO_TRIGGERS } from '../../setup/citus-skips.ts'
import { append, event, newId } from '../suite/sample.ts'
import { refusal, useTestDatabase } from './store-trouble.ts'

const { url, whileFailing, withStorage } = useTestDatabase()
const TIMEOUTS = { connectMs: 5_000, statementMs: 5_000, lockMs: 5_000, idleInTransactionMs: 5_000 }

/** The second statement, which the caller awaits first, fails because the first one did. */
const failing = (statement: string) => async (client: PoolClient) => {
  client.query(statement).catch(() => undefined)
  await client.query('SELECT 1')
}

/** A statement that raises this error. */
const raising = (code: string, message: string): string =>
  `DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${code}', MESSAGE = '${message}'; END $$`

function connect() {
  const { config: address } = parseAddress(url())
  const connections = openConnections({
    address,
    size: 1,
    timeouts: TIMEOUTS,
    reachability: createReachability(() => undefined),
    verify: async () => undefined,
  })
  return Object.assign(connections, { [Symbol.asyncDispose]: () => connections.end() })
}

test('the first error of a transaction is the one that its caller gets', async () => {
  await using connections = connect()
  for (const kind of ['transaction', 'snapshot'] as const) {
    await assert.rejects(connections[kind](failing('SELECT 1 / 0')), { code: '22012' })
    await assert.rejects(connections[kind](failing('SELECT no_such_column')), { code: '42703' })
    const shutDown = failing(raising('57P03', 'worker down'))
    await assert.rejects(connections[kind](shutDown), refusal('storage_unavailable'))
    const { rows } = await connections[kind]((client) => client.query<{ one: number }>('SELECT 1 AS one'))
    assert.deepEqual(rows, [{ one: 1 }])
  }
})

test('a failed transaction whose first error is unknown may be tried again', { skip: NO_TRIGGERS }, async () => {
  await withStorage({}, async (storage) => {
    const env = newId()
    await whileFailing('events', '25P02', async () => {
      await assert.rejects(append(storage, env, event()), refusal('storage_unavailable'))
    })
    assert.deepEqual(await append(storage, env, event()), ['stored'])
  })
})

test('a connection that Citus lost to a worker is unavailable storage, another internal error is not', async () => {
  await using connections = connect()
  const lost = failing(raising('XX000', 'SSL SYSCALL error: EOF detected'))
  await assert.rejects(connections.transaction(lost), refusal('storage_unavailable'))
  await assert.rejects(connections.transaction(failing(raising('XX000', 'cache lookup failed'))), { code: 'XX000' })
})
