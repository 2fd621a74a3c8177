/** The limit of reading: the server's SQL through `pg`, without transactions, a pool and HTTP. */
import { clientConfig } from '@tacho/server/storage/postgres/connections.ts'
import { postgresSql } from '@tacho/server/storage/postgres/sql.ts'
import pg from 'pg'
import { answer } from '../child.ts'
import type { Times } from '../stats.ts'
import { readsOf, type BareReads } from './reads.ts'

export type PostgresReads = BareReads & { url: string }

const TIMEOUTS = { connectMs: 5_000, statementMs: 60_000, lockMs: 60_000, idleInTransactionMs: 60_000 }

answer<PostgresReads, Times>(async ({ url, ...task }) => {
  const client = new pg.Client(clientConfig({ connectionString: url }, TIMEOUTS))
  await client.connect()
  try {
    // As the server has it.
    await client.query('SET search_path = tacho; SET jit = off; SET enable_seqscan = off')
    const { rows } = await client.query<{ id: string }>('SELECT environment_id AS id FROM runs LIMIT 1')
    return await readsOf(postgresSql(client), rows[0]?.id ?? '').pages(task)
  } finally {
    await client.end()
  }
})
