import pg, { type ClientConfig, type PoolClient } from 'pg'
import { StorageError, StoreRefused } from '../engine/store.ts'
import { connectError, isPoolBusy, keepsConnection, storageError, firstFailure } from './errors.ts'
import type { Reachability } from './reachability.ts'
import { readFileSync } from 'node:fs'

export interface Address {
  config: Pick<ClientConfig, 'connectionString' | 'ssl' | 'application_name'>
  /** Connection string without the password. */
  shown: string
}

const SSL_PARAMETERS = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey']
const OTHER_PARAMETERS = ['host', 'application_name']

/** `sslmode` as in libpq, but `prefer` and `allow` are refused: they guarantee nothing. Without it, no encryption. */
export function parseAddress(addressText: string): Address {
  const url = URL.parse(addressText)
  if (url === null || !['postgres:', 'postgresql:'].includes(url.protocol)) {
    throw new StoreRefused('The database URL must have the form postgres://user:password@host:port/database.')
  }
  const parameters = Object.fromEntries(url.searchParams)
  for (const name of Object.keys(parameters)) {
    if (![...SSL_PARAMETERS, ...OTHER_PARAMETERS].includes(name)) {
      throw new StoreRefused(`The database URL has an unknown parameter ${name}.`)
    }
  }
  for (const name of SSL_PARAMETERS) url.searchParams.delete(name)
  const host = parameters['host'] ?? url.host
  return {
    config: {
      connectionString: url.href,
      ssl: tlsOptions(parameters),
      application_name: parameters['application_name'] ?? 'tacho',
    },
    shown: `${host}${url.pathname}`,
  }
}

type Tls = Exclude<ClientConfig['ssl'], undefined>

function tlsOptions(parameters: Record<string, string | undefined>): Tls {
  const { sslmode = 'disable', sslrootcert, sslcert, sslkey } = parameters
  if (sslmode === 'disable') return false
  const checksRoot = sslrootcert !== undefined && sslrootcert !== 'system'
  const certificates = {
    // Without a CA file, Node trusts its default authorities.
    ...(checksRoot && { ca: certificate('sslrootcert', sslrootcert) }),
    ...(sslcert !== undefined && { cert: certificate('sslcert', sslcert) }),
    ...(sslkey !== undefined && { key: certificate('sslkey', sslkey) }),
  }
  const anyName = { checkServerIdentity: () => undefined }
  if (sslmode === 'verify-full') return certificates
  // With a root certificate, `require` checks the same as `verify-ca`, like libpq.
  if (sslmode === 'require')
    return checksRoot ? { ...certificates, ...anyName } : { ...certificates, rejectUnauthorized: false }
  if (sslmode !== 'verify-ca') {
    throw new StoreRefused(
      `sslmode must be disable, require, verify-ca or verify-full, not ${JSON.stringify(sslmode)}.`,
    )
  }
  // A CA file is required, because anyone can get a certificate for their own name from a public authority.
  if (!checksRoot) throw new StoreRefused("sslmode=verify-ca needs your own authority's certificate in sslrootcert.")
  return { ...certificates, ...anyName }
}

function certificate(parameter: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new StoreRefused(`${parameter} names ${JSON.stringify(file)}, which cannot be read (${code}).`)
  }
}

export interface Timeouts {
  connectMs: number
  statementMs: number
  lockMs: number
  /** After this time, the database ends a silent node's transaction and unlocks its rows. */
  idleInTransactionMs: number
}

interface ConnectionsOptions {
  address: ClientConfig
  size: number
  timeouts: Timeouts
  reachability: Reachability
  /** Throws if the connection leads to another database. */
  verify: (client: pg.ClientBase) => Promise<void>
}

export interface Connections {
  use<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result>
  transaction<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result>
  pipeline(): Pipeline
  snapshot<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result>
  /** Number of connections opened so far. */
  opened(): number
  end(): Promise<void>
}

/**
 * Transactions on one connection, in order. Each is sent as soon as the end of the previous one has been sent, so the
 * database never waits for this process in between. It waits for no lock of the previous one, and sees what that one
 * stored.
 */
export interface Pipeline {
  transaction<Result>(work: Work<Result>, end: End, onSent: () => void, begin?: string): Promise<Result>
}

type End = 'commit' | 'rollback'
type Work<Result> = (client: PoolClient, atCommit: AtCommit) => Promise<Result>

/** All tables are in this schema, so other programs can use the same database. */
export const SCHEMA = 'tacho'

/**
 * Plans that no statement needs, because each has an index in its own order (postgres/plans.test.ts). Statistics cover
 * all tenants together: a large environment may look small, and these plans would read and sort all of its rows.
 */
export const UNWANTED = ['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin', 'material', 'incremental_sort']

/**
 * With synchronous_commit off, a crash would lose acknowledged data. Every other setting flushes it to a disk first.
 */
const SETTINGS = `SELECT set_config('search_path', '${SCHEMA}', false), set_config('jit', 'off', false),
  ${UNWANTED.map((plan) => `set_config('enable_${plan}', 'off', false)`).join(', ')},
  set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
    ELSE current_setting('synchronous_commit') END, false)`

const SNAPSHOT = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'
const INT8 = 20
/** Extra time for a database that does not answer. Otherwise the database times out first and reports a reason. */
const SILENCE_MS = 5_000

/** Reads bigints as numbers. They are exact, because sums saturate at the largest exact integer. */
const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    return oid === INT8 ? Number : pg.types.getTypeParser(oid, format as 'text')
  },
} as NonNullable<ClientConfig['types']>

export function clientConfig(address: ClientConfig, timeouts: Timeouts): ClientConfig {
  return {
    ...address,
    types,
    connectionTimeoutMillis: timeouts.connectMs,
    statement_timeout: timeouts.statementMs,
    lock_timeout: timeouts.lockMs,
    idle_in_transaction_session_timeout: timeouts.idleInTransactionMs,
    // 0 disables the timeout, as it does for the others.
    query_timeout: timeouts.statementMs === 0 ? 0 : timeouts.statementMs + SILENCE_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  }
}

export function openConnections({ address, size, timeouts, reachability, verify }: ConnectionsOptions): Connections {
  const pool = new pg.Pool({
    ...clientConfig(address, timeouts),
    max: size,
    // Connections stay open: opening one takes tens of milliseconds, for which a request would wait.
    idleTimeoutMillis: 0,
    // Sends statements together if nothing is awaited between them.
    pipeline: true,
    onConnect: (client) => Promise.all([client.query(SETTINGS), verify(client)]) as unknown as void,
  })
  // Ignored here, because the next user of the connection gets the error.
  pool.on('error', () => undefined)
  let opened = 0
  pool.on('connect', (client) => {
    opened++
    client.on('error', () => undefined)
  })

  async function connect(): Promise<PoolClient> {
    reachability.check()
    try {
      const client = await pool.connect()
      reachability.connected()
      return client
    } catch (error) {
      throw isPoolBusy(error) ? connectError(error) : reachability.failed(error)
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

  /** The result is returned before the transaction ends: only the connection waits for that. */
  async function snapshot<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    use(async (client) => {
      const failure = firstFailure(client)
      const begun = client.query(SNAPSHOT)
      try {
        const [result] = await Promise.all([work(client), begun])
        resolve(result)
        await client.query('COMMIT')
      } catch (error) {
        await Promise.allSettled([begun])
        throw await rolledBack(client, failure.behind(error))
      }
    }).catch(reject)
    return promise
  }

  function pipeline(): Pipeline {
    let last: Promise<void> = Promise.resolve()
    let lease: Lease | null = null
    return {
      async transaction(work, end, onSent, begin) {
        const before = last
        const { promise, resolve: proceed } = Promise.withResolvers<void>()
        last = promise
        await before
        const ownLease = (lease ??= { connected: connect(), users: 0, isSound: true })
        ownLease.users++
        try {
          const sent = () => {
            proceed()
            onSent()
          }
          return await inTransaction(await ownLease.connected, work, end, sent, begin)
        } catch (error) {
          ownLease.isSound &&= keepsConnection(error)
          if (!ownLease.isSound && lease === ownLease) lease = null
          throw storageError(error)
        } finally {
          proceed()
          ownLease.users--
          if (ownLease.users === 0) {
            if (lease === ownLease) lease = null
            await ownLease.connected.then(
              (client) => client.release(!ownLease.isSound || client.getTransactionStatus() !== 'I'),
              () => undefined,
            )
          }
        }
      },
    }
  }

  return {
    use,
    transaction: (work) => use((client) => inTransaction(client, work)),
    pipeline,
    snapshot,
    opened: () => opened,
    end: () => pool.end(),
  }
}

interface Lease {
  connected: Promise<PoolClient>
  users: number
  isSound: boolean
}

export type AtCommit = (statement: Promise<unknown>) => void

/** Statements given to `atCommit` are sent with the commit; if one fails, nothing is committed. */
export async function inTransaction<Result, Client extends pg.ClientBase>(
  client: Client,
  work: (client: Client, atCommit: AtCommit) => Promise<Result>,
  end: End = 'commit',
  onSent: () => void = () => undefined,
  begin = 'BEGIN',
): Promise<Result> {
  const failure = firstFailure(client)
  const sent: Promise<unknown>[] = []
  const atCommit: AtCommit = (statement) => {
    // Ignored here, because the commit reports the failure.
    statement.catch(() => undefined)
    sent.push(statement)
  }
  // Not awaited, so that it is sent with the first statement of the work.
  atCommit(client.query(begin))
  let result: Result
  try {
    result = await work(client, atCommit)
  } catch (error) {
    await Promise.allSettled(sent)
    throw await rolledBack(client, failure.behind(error))
  }
  // COMMIT also ends a failed transaction. After `onSent`, the connection may belong to the next one.
  const ended = end === 'commit' ? commit(client) : client.query('ROLLBACK')
  onSent()
  const settled = await Promise.allSettled([...sent, ended])
  const failed = settled.find((outcome) => outcome.status === 'rejected')
  if (failed) throw failed.reason
  return result
}

/** If the rollback fails too, the connection is closed, which also ends the transaction. */
async function rolledBack(client: pg.ClientBase, error: unknown): Promise<unknown> {
  if (keepsConnection(error) && client.getTransactionStatus() !== 'I') {
    await client.query('ROLLBACK').catch(() => undefined)
  }
  return error
}

/** After a failed statement, COMMIT reports no error but commits nothing. */
async function commit(client: pg.ClientBase): Promise<void> {
  const { command } = await client.query('COMMIT')
  if (command !== 'COMMIT') throw new StorageError('storage_unavailable', 'The transaction could not be committed')
}
