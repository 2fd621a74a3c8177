/**
 * Whether the database answers. Every request asks here first, so that none waits for a database that is away.
 *
 *   here --cannot connect--> away --pause over--> retried by the next request --connected--> here
 *     |                       ^------------------------cannot connect----'
 *     +--the probe's answer is late, or from another database--> away --the probe reaches this database--> here
 *
 * While it is away, requests fail at once, and those under way end too: reads at once, batches after BATCH_MS, because
 * the database may still answer. Pauses double up to LONGEST_PAUSE_MS. Only an answer to the probe ends an outage that
 * the probe found.
 */
import pg, { DatabaseError, type ClientBase, type ClientConfig } from 'pg'
import { StorageError, StoreAway } from '../engine/store.ts'
import { connectError } from './errors.ts'
import { setTimeout as wait } from 'node:timers/promises'
import type { WaitingCommits } from '../engine/store-checks.ts'

export type Reachability = ReturnType<typeof createReachability>
/** `refused`: number of calls that failed while the database was away. */
export type OnReachable = (reachable: boolean, facts: { why: string; seconds?: number; refused?: number }) => void

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1_000
const BATCH_MS = 5_000
const CANNOT_CONNECT = 'The database cannot be reached'

export function createReachability(onChange: OnReachable) {
  let failures = 0
  let silentUntil = 0
  let lastFailure: unknown = null
  /** Reason that the probe reported. */
  let reason: string | null = null
  let awaySince: number | null = null
  let refused = 0
  const reads = new Set<(error: StoreAway) => void>()
  const batches = new Set<(error: StoreAway) => void>()

  function away(why: string): void {
    if (awaySince !== null) return
    awaySince = performance.now()
    refused = 0
    onChange(false, { why })
    rejectAll(reads)
    setTimeout(() => awaySince !== null && rejectAll(batches), BATCH_MS).unref()
  }

  function here(): void {
    if (awaySince === null || failures > 0 || reason !== null) return
    const seconds = Math.round((performance.now() - awaySince) / 100) / 10
    awaySince = null
    onChange(true, { why: 'the database answers again', seconds, refused })
  }

  function probeFailed(why: string): void {
    reason = why
    away(why)
  }

  function rejectAll(waiting: Set<(error: StoreAway) => void>): void {
    for (const reject of waiting) reject(refusal())
    waiting.clear()
  }

  function refusal(cause?: unknown): StoreAway {
    refused++
    return new StoreAway(reason ?? CANNOT_CONNECT, cause)
  }

  /** Rejects when the database is away. The work goes on: its connection stays in use until the database answers. */
  function untilAway<Result>(work: Promise<Result>, waiting = reads): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    waiting.add(reject)
    void work.then(resolve, reject).finally(() => waiting.delete(reject))
    return promise
  }

  return {
    isReachable: () => failures === 0 && reason === null,
    reason: () => reason ?? (failures > 0 ? CANNOT_CONNECT : null),
    check(): void {
      if (reason !== null) throw refusal()
      if (performance.now() < silentUntil) throw refusal(lastFailure)
    },
    connected(): void {
      failures = 0
      silentUntil = 0
      here()
    },
    /** Notes the error and returns the one for the caller. */
    failed(error: unknown): unknown {
      if (error instanceof OtherDatabase) {
        probeFailed(error.message)
        return refusal(error)
      }
      lastFailure = error
      const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures)
      // Jitter, so that nodes do not all reconnect at the same moment.
      silentUntil = performance.now() + pause * (0.5 + Math.random() / 2)
      failures++
      away(error instanceof Error ? error.message : String(error))
      const connectProblem = connectError(error)
      return connectProblem instanceof StorageError &&
        connectProblem.code === 'storage_unavailable' &&
        !(connectProblem instanceof StoreAway)
        ? refusal(connectProblem)
        : connectProblem
    },
    probeFailed,
    probeAnswered(): void {
      reason = null
      failures = 0
      silentUntil = 0
      here()
    },
    untilAway,
    batchUntilAway: <Result>(work: Promise<Result>) => untilAway(work, batches),
  }
}

/** Whether a connection leads to the database of this installation: after a failover it may be an empty one, or an old copy. */

/** The message is for clients, so it names no secret. */
class OtherDatabase extends Error {}

/** Identity that the store's database reports. */
export interface Identity {
  installation: string | null
  schema: number
}

const IDENTITY_QUERY = `SELECT (SELECT value FROM tacho.secrets WHERE name = 'installation') AS installation,
  (SELECT max(version) FROM tacho.migrations) AS schema`

const UNDEFINED_TABLE = '42P01'

/** Throws if the connection leads to another database than that of the installation. */
export async function checkIdentity(client: ClientBase, identity: Identity): Promise<void> {
  const fault = otherDatabase(await readIdentity(client), identity)
  if (fault !== null) throw new OtherDatabase(fault)
}

async function readIdentity(client: ClientBase): Promise<Identity | null> {
  try {
    return (await client.query<Identity>(IDENTITY_QUERY)).rows[0] ?? null
  } catch (error) {
    if (error instanceof DatabaseError && error.code === UNDEFINED_TABLE) return null
    throw error
  }
}

function otherDatabase(otherIdentity: Identity | null, { installation, schema }: Identity): string | null {
  if (otherIdentity === null || otherIdentity.installation === null)
    return 'The database has no store of this installation: it is empty'
  if (otherIdentity.installation !== installation) return 'The database belongs to another installation'
  if (otherIdentity.schema < schema)
    return `The database has schema ${otherIdentity.schema}, and this node knows ${schema}: it is an older copy`
  return null
}

/**
 * Asks the database twice a second on a separate connection whether it answers and whether it is the database of this
 * installation. So readiness, metrics and requests know this from memory.
 *
 *   connecting --connected--> asking --answer--> pausing --PROBE_MS--> asking
 *       ^                       |--late: the database is away, the question stays open--> asking
 *       +---cannot connect------+--no answer for GIVE_UP_MS, or the connection is lost--> connecting
 */
const PROBE_MS = 500
/** Measured in turns of this process's event loop, because a busy machine answers later than an idle one. */
const LATE_MS = 2_000
const GIVE_UP_MS = 7_000
const TURN_MS = 100
const TOO_MANY_CONNECTIONS = '53300'
const BLOCKERS = `SELECT DISTINCT b.pid, b.usename AS "user", b.application_name AS application,
    round(extract(epoch FROM clock_timestamp() - b.xact_start))::int AS seconds
  FROM pg_stat_activity a CROSS JOIN LATERAL unnest(pg_blocking_pids(a.pid)) AS blocked (by)
  JOIN pg_stat_activity b ON b.pid = blocked.by
  WHERE a.datname = current_database() AND a.wait_event_type = 'Lock'
    AND NOT EXISTS (SELECT 1 FROM pg_stat_activity o WHERE o.pid = b.pid AND o.wait_event_type = 'Lock')
  ORDER BY 4 DESC NULLS LAST LIMIT 5`

/** `state` is null for a session whose role may not be seen, so that session may be older too. */
const OLDER_TRANSACTIONS = `SELECT count(*)::int AS count FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND (state IS NULL OR xact_start < clock_timestamp() - make_interval(secs => $1))`

export interface Blocker {
  pid: number
  user: string | null
  application: string | null
  seconds: number | null
}

interface ProbeOptions {
  address: ClientConfig
  identity: Identity
  reachability: Reachability
  commits: Pick<WaitingCommits, 'gaveUpAgoMs' | 'forget'>
}

export function startProbe({ address, identity, reachability, commits }: ProbeOptions) {
  const stopping = new AbortController()
  let client: pg.Client | null = null

  /** `client` is set before it connects, so that `drop` also ends an attempt. */
  async function connect(): Promise<pg.Client> {
    client = new pg.Client({ ...address, connectionTimeoutMillis: GIVE_UP_MS, keepAlive: true })
    client.on('error', () => undefined)
    const attempt = client
    await attempt.connect()
    return attempt
  }

  async function ask(): Promise<void> {
    let turns = 0
    // Counts turns instead of one timeout: while this process is busy, such as at its start, an answer in time waits
    // unread.
    const timer = setInterval(() => {
      turns++
      if (turns === LATE_MS / TURN_MS) reachability.probeFailed('The database does not answer')
      if (turns === GIVE_UP_MS / TURN_MS) drop()
    }, TURN_MS)
    try {
      const answer = await readIdentity(client ?? (await connect()))
      const fault = otherDatabase(answer, identity)
      if (fault !== null) {
        reachability.probeFailed(fault)
        // Reconnect, because the next connection may lead to the right database.
        drop()
      } else if (answer !== null) {
        reachability.probeAnswered()
        await lookForBlockers()
      }
    } catch (error) {
      drop()
      // Too many connections is no outage: requests already have their connections.
      const isCrowded = error instanceof DatabaseError && error.code === TOO_MANY_CONNECTIONS
      if (!isCrowded && !stopping.signal.aborted) reachability.probeFailed('The database cannot be reached')
    } finally {
      clearInterval(timer)
    }
  }

  /** A node that is not ready gets no writes, so no write could show that writes succeed again. */
  async function lookForBlockers(): Promise<void> {
    const agoMs = commits.gaveUpAgoMs()
    if (agoMs === null || client === null) return
    const { rows } = await client.query<{ count: number }>(OLDER_TRANSACTIONS, [agoMs / 1_000])
    if (rows[0]?.count === 0 && commits.gaveUpAgoMs() !== null) commits.forget()
  }

  function drop(): void {
    // `end` would wait for the database.
    client?.connection.stream.destroy()
    client = null
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await ask()
      await wait(PROBE_MS, undefined, { signal: stopping.signal }).catch(() => undefined)
    }
  }
  const running = run()

  return {
    /** Sessions that hold the locks for which sessions of this database wait. */
    blockers: async (): Promise<Blocker[]> => ((await client?.query(BLOCKERS))?.rows as Blocker[] | undefined) ?? [],
    async close(): Promise<void> {
      stopping.abort()
      drop()
      await running
    },
  }
}
