/** The connections of a node. What holds of each of them is set when it opens; one that broke never serves again. */
import pg, { type ClientConfig, type PoolClient } from 'pg'
import { StorageError } from '../storage.ts'
import { connectError, followsFailure, isPoolBusy, keepsConnection, storageError } from './errors.ts'
import type { Reachability } from './reachability.ts'

export interface Timeouts {
  /** For a connection to open, or to become free. */
  connectMs: number
  statementMs: number
  /** For a row that another transaction holds. */
  lockMs: number
  /** After which the database ends a transaction whose node has fallen silent, and frees its rows. */
  idleInTransactionMs: number
}

export interface ConnectionsOptions {
  address: ClientConfig
  size: number
  timeouts: Timeouts
  reachability: Reachability
}

export interface Connections {
  /** Runs work on a connection of its own. Rejects with a StorageError where the trouble is the store's. */
  use<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result>
  /** The same in a transaction, committed durably when the promise resolves. */
  transaction<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result>
  /** The same on one snapshot, without writing. */
  snapshot<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result>
  end(): Promise<void>
}

/** Where the tables lie: a schema of our own, so that a database may be shared with others. */
export const SCHEMA = 'tacho'

/**
 * Plans that this service never wants: each statement has its index, in the order it asks for. An environment or a run may
 * have millions of rows where the statistics say few, for they are of all tenants together, and there are none while a
 * table is new; then these would read and sort all rows of a tenant for one page. postgres-plans.test.ts holds on to it.
 */
const UNWANTED = ['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin', 'material']

/**
 * synchronous_commit off would acknowledge what a crash loses; whatever else an administrator chose promises no less than
 * the disk of one machine.
 */
const SETTINGS = `SELECT set_config('search_path', '${SCHEMA}', false), set_config('jit', 'off', false),
  ${UNWANTED.map((plan) => `set_config('enable_${plan}', 'off', false)`).join(', ')},
  set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
    ELSE current_setting('synchronous_commit') END, false)`

const SNAPSHOT = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'
const INT8 = 20
/** The database gives up first, and says why; this is for one that has fallen silent. */
const SILENCE_MS = 5_000

/** Our numbers are exact as JavaScript's: sums end at the largest exact integer. */
const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    return oid === INT8 ? Number : pg.types.getTypeParser(oid, format as 'text')
  },
} as NonNullable<ClientConfig['types']>

/** How a client of this service connects. */
export function clientConfig(address: ClientConfig, timeouts: Timeouts): ClientConfig {
  return {
    ...address,
    types,
    connectionTimeoutMillis: timeouts.connectMs,
    statement_timeout: timeouts.statementMs,
    lock_timeout: timeouts.lockMs,
    idle_in_transaction_session_timeout: timeouts.idleInTransactionMs,
    query_timeout: timeouts.statementMs + SILENCE_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  }
}

export function openConnections({ address, size, timeouts, reachability }: ConnectionsOptions): Connections {
  const pool = new pg.Pool({
    ...clientConfig(address, timeouts),
    max: size,
    // To open one takes tens of milliseconds, and whoever asks in that moment waits for it.
    idleTimeoutMillis: 0,
    // Statements that nobody waits for in between travel together.
    pipeline: true,
    onConnect: (client) => client.query(SETTINGS) as unknown as void,
  })
  // An error of a connection that nobody uses is not lost: whoever needs one next is told.
  pool.on('error', () => undefined)
  pool.on('connect', (client) => client.on('error', () => undefined))

  async function connect(): Promise<PoolClient> {
    reachability.check()
    try {
      const client = await pool.connect()
      reachability.connected()
      return client
    } catch (error) {
      if (!isPoolBusy(error)) reachability.failed(error)
      throw connectError(error)
    }
  }

  async function use<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result> {
    const client = await connect()
    try {
      const result = await work(client)
      client.release(client.getTransactionStatus() !== 'I')
      return result
    } catch (error) {
      const isSound = keepsConnection(error) && client.getTransactionStatus() === 'I'
      client.release(!isSound)
      throw storageError(error)
    }
  }

  /** Its result is told before the transaction is over: nothing but the connection waits for that. */
  async function snapshot<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    use(async (client) => {
      const begun = client.query(SNAPSHOT)
      try {
        const [result] = await Promise.all([work(client), begun])
        resolve(result)
        await client.query('COMMIT')
      } catch (error) {
        await Promise.allSettled([begun])
        await rollback(client, error)
        throw error
      }
    }).catch(reject)
    return promise
  }

  return {
    use,
    transaction: (work) => use((client) => inTransaction(client, work)),
    snapshot,
    end: () => pool.end(),
  }
}

export type AtCommit = (statement: Promise<unknown>) => void

/**
 * Works in a transaction of a connection. A failed one is rolled back where the connection still answers. Statements that
 * the work hands to `atCommit` travel together with the end of it; if one of them fails, nothing is committed.
 */
export async function inTransaction<Result, Client extends pg.ClientBase>(
  client: Client,
  work: (client: Client, atCommit: AtCommit) => Promise<Result>,
  end: 'commit' | 'rollback' = 'commit',
): Promise<Result> {
  const sent: Promise<unknown>[] = []
  const atCommit: AtCommit = (statement) => {
    // Its failure is reported by the commit.
    statement.catch(() => undefined)
    sent.push(statement)
  }
  // Not awaited: it travels with the first statement of the work.
  atCommit(client.query('BEGIN'))
  try {
    const result = await work(client, atCommit)
    const ended = end === 'commit' ? commit(client) : client.query('ROLLBACK')
    const settled = await Promise.allSettled([...sent, ended])
    const failed = settled.find((outcome) => outcome.status === 'rejected')
    if (failed) throw failed.reason
    return result
  } catch (error) {
    const settled = await Promise.allSettled(sent)
    await rollback(client, error)
    if (!followsFailure(error)) throw error
    throw settled.find((outcome) => outcome.status === 'rejected')?.reason ?? error
  }
}

/** A commit that found a failed transaction has ended it already. */
async function rollback(client: pg.ClientBase, error: unknown): Promise<void> {
  if (keepsConnection(error) && client.getTransactionStatus() !== 'I') await client.query('ROLLBACK')
}

/** Commits, or throws: after a statement that failed, COMMIT is answered without an error and commits nothing. */
async function commit(client: pg.ClientBase): Promise<void> {
  const { command } = await client.query('COMMIT')
  if (command !== 'COMMIT') throw new StorageError('storage_unavailable', 'The transaction could not be committed')
}
