/**
 * Asks the database twice a second on a connection of its own, so that readiness, metrics and requests know from memory how it
 * is: whether it answers, and whether it is the database of this installation.
 *
 *   connecting --connected--> asking --answer--> pausing --PROBE_MS--> asking
 *       ^                       |--late: the database is away, the question stays open--> asking
 *       +---cannot connect------+--no answer for GIVE_UP_MS, or the connection is lost--> connecting
 */
import { setTimeout as wait } from 'node:timers/promises'
import pg, { DatabaseError, type ClientConfig } from 'pg'
import type { WaitingCommits } from '../engine/store-checks.ts'
import { otherDatabase, readIdentity, type Identity, type Reachability } from './reachability.ts'

const PROBE_MS = 500
/** Counted in turns of this process, because a busy machine answers later than an idle one. */
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

/** If the role of a session may not be seen, its `state` is null. Then nothing is known. */
const OLDER_TRANSACTIONS = `SELECT count(*)::int AS count FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND (state IS NULL OR xact_start < clock_timestamp() - make_interval(secs => $1))`

export interface Blocker {
  pid: number
  user: string | null
  application: string | null
  seconds: number | null
}

export interface ProbeOptions {
  address: ClientConfig
  identity: Identity
  reachability: Reachability
  commits: Pick<WaitingCommits, 'gaveUpAgoMs' | 'forget'>
}

export function startProbe({ address, identity, reachability, commits }: ProbeOptions) {
  const stopping = new AbortController()
  let client: pg.Client | null = null

  /** Known before it is connected, so that `drop` also ends an attempt. */
  async function connect(): Promise<pg.Client> {
    client = new pg.Client({ ...address, connectionTimeoutMillis: GIVE_UP_MS, keepAlive: true })
    client.on('error', () => undefined)
    const attempt = client
    await attempt.connect()
    return attempt
  }

  async function ask(): Promise<void> {
    let turns = 0
    // Not one timer: while this process is busy, such as at its start, an answer waits unread although the database is not late.
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
        // The next connection may lead to the right one.
        drop()
      } else if (answer !== null) {
        reachability.probeAnswered()
        await lookForBlockers()
      }
    } catch (error) {
      drop()
      // Requests have their connections.
      const isCrowded = error instanceof DatabaseError && error.code === TOO_MANY_CONNECTIONS
      if (!isCrowded && !stopping.signal.aborted) reachability.probeFailed('The database cannot be reached')
    } finally {
      clearInterval(timer)
    }
  }

  /** A node that is not ready gets no writes that could show it that they succeed again. */
  async function lookForBlockers(): Promise<void> {
    const agoMs = commits.gaveUpAgoMs()
    if (agoMs === null || client === null) return
    const { rows } = await client.query<{ count: number }>(OLDER_TRANSACTIONS, [agoMs / 1_000])
    if (rows[0]?.count === 0 && commits.gaveUpAgoMs() !== null) commits.forget()
  }

  function drop(): void {
    // Not `end`, which would wait for the database.
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
    /** Who holds the locks that sessions of this database wait for. */
    blockers: async (): Promise<Blocker[]> => ((await client?.query(BLOCKERS))?.rows as Blocker[] | undefined) ?? [],
    async close(): Promise<void> {
      stopping.abort()
      drop()
      await running
    },
  }
}
