import { checkSettings, checkPayloads, payloadsCheck, type Snapshot } from '../sql/engine/checksum-checks.ts'
import { mib, queueCheck, type PayloadSlices } from '../engine/store-checks.ts'
import type { StoreCheck } from '../engine/store.ts'
import type { Connections } from './connections.ts'
import { CLOCKS } from './nodes.ts'
import type { Blocker } from './reachability.ts'
import { postgresSql } from './sql.ts'

export interface Inspected {
  connections: Connections
  poolSize: number
  nodes: number
  queuedBytes: number
  queueBytes: number
  schema: number
  commitWaitMs: number
  blockers(): Promise<Blocker[]>
  slices: PayloadSlices
}

interface Facts extends Record<'version' | 'synchronousCommit' | 'fsync' | 'fullPageWrites', string> {
  maxConnections: number
  schema: number
  bytes: number
}

const NEWEST_TESTED_MAJOR = 18
/** Nodes compare expiry times and limits by their clocks, so these may differ only a little. */
const MAX_SKEW_MS = 1_000

const FACTS = `SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync,
    current_setting('synchronous_commit') AS "synchronousCommit",
    current_setting('full_page_writes') AS "fullPageWrites",
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
      AS "maxConnections",
    (SELECT max(version) FROM migrations) AS schema, pg_database_size(current_database()) AS bytes`

/** Only sessions of clients have a database. `backend_type` would be exact, but that of other users is hidden. */
const SESSIONS = `SELECT coalesce(usename::text, 'unknown') || coalesce(' (' || nullif(application_name, '') || ')', '') AS whose,
    count(*) AS sessions FROM pg_stat_activity WHERE datid IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1`

interface Sessions {
  whose: string
  sessions: number
}

interface Clock {
  slot: number
  offsetMs: number | null
}

/** A commit normally takes milliseconds. */
const LONG_WAIT_MS = 5_000
const MOST_OWNERS = 4

export async function inspectDatabase(inspected: Inspected): Promise<StoreCheck[]> {
  const { connections, poolSize, nodes, slices } = inspected
  const snapshot: Snapshot = (work) => connections.snapshot((client) => work(postgresSql(client)))
  const { facts, sessions, clocks } = await connections.use(async (client) => {
    const [found] = (await client.query<Facts>(FACTS)).rows
    if (found === undefined) throw new Error('The database returned no row')
    const { rows } = await client.query<Sessions>(SESSIONS)
    return { facts: found, sessions: rows, clocks: (await client.query<Clock>(CLOCKS)).rows }
  })
  const { version, synchronousCommit, fsync, fullPageWrites, maxConnections, bytes, schema } = facts
  const isTried = Number.parseInt(version, 10) <= NEWEST_TESTED_MAJOR
  const isDurable = synchronousCommit !== 'off' && fsync === 'on' && fullPageWrites === 'on'
  const settings = `synchronous_commit ${synchronousCommit}, fsync ${fsync}, full_page_writes ${fullPageWrites}`
  // Each node also has one for heartbeats and one for the probe.
  const wanted = (poolSize + 2) * nodes
  return [
    {
      name: 'database',
      ok: isTried,
      detail: `PostgreSQL ${version}${isTried ? '' : `, newer than any that this version of Tacho was tried on`}`,
    },
    {
      name: 'durability',
      ok: isDurable,
      detail: `${isDurable ? 'Each acknowledged commit is on disk' : 'A crash may lose acknowledged data'} (${settings})`,
    },
    connectionsCheck(sessions, { maxConnections, nodes, wanted }),
    clocksCheck(clocks),
    await commitsCheck(inspected),
    queueCheck(inspected, ' on this node'),
    {
      name: 'schema',
      // A newer schema comes from a newer node: an upgrade is in progress.
      ok: schema === inspected.schema,
      detail: `The store has schema ${schema}, ${mib(bytes)}; this node knows ${inspected.schema}`,
    },
    await checkSettings(snapshot),
    await checkedPayloads(slices.isLarge(bytes) ? slices : null, snapshot),
  ]
}

/**
 * Without `slices`, checks all payloads at once. A database that is large only because of other programs or free pages gets
 * slices too; the first ones then already check everything.
 */
async function checkedPayloads(slices: PayloadSlices | null, snapshot: Snapshot): Promise<StoreCheck> {
  if (slices === null) return payloadsCheck(await checkPayloads(snapshot))
  const { done, budgetMs } = slices.next()
  return slices.checked(await checkPayloads(snapshot, done, budgetMs))
}

function connectionsCheck(
  sessions: Sessions[],
  { maxConnections, nodes, wanted }: Record<'maxConnections' | 'nodes' | 'wanted', number>,
): StoreCheck {
  const open = sessions.reduce((sum, each) => sum + each.sessions, 0)
  const whose = sessions.slice(0, MOST_OWNERS).map((each) => `${each.sessions} of ${each.whose}`)
  if (sessions.length > MOST_OWNERS) whose.push('others')
  const detail = `${open} of ${maxConnections} are open (${whose.join(', ')}); ${nodes} nodes may open ${wanted}`
  return { name: 'connections', ok: wanted <= maxConnections && open < maxConnections, detail }
}

function clocksCheck(clocks: Clock[]): StoreCheck {
  const known = clocks
    .filter(({ offsetMs }) => offsetMs !== null)
    .map(({ slot, offsetMs }) => ({ slot, ms: offsetMs ?? 0 }))
  const wrong = known.filter(({ ms }) => Math.abs(ms) > MAX_SKEW_MS)
  const text = ({ slot, ms }: (typeof known)[number]) =>
    `node ${slot} ${Math.abs(ms)} ms ${ms > 0 ? 'behind' : 'ahead'}`
  const detail =
    wrong.length === 0
      ? `The clocks of ${known.length} of ${clocks.length} nodes are within ${MAX_SKEW_MS} ms of the database's`
      : `Clocks differ from the database's: ${wrong.map(text).join(', ')}. Synchronise them`
  return { name: 'clock', ok: wrong.length === 0, detail }
}

async function commitsCheck({
  commitWaitMs,
  blockers,
}: Pick<Inspected, 'commitWaitMs' | 'blockers'>): Promise<StoreCheck> {
  const name = 'commits'
  if (commitWaitMs < LONG_WAIT_MS) {
    return { name, ok: true, detail: `No write has waited longer than ${LONG_WAIT_MS / 1000} s for its commit` }
  }
  const blockingLocks = await blockers()
  const who = blockingLocks.map(
    ({ pid, user, application, seconds }) =>
      `session ${pid} of ${user ?? 'unknown'}${application ? ` (${application})` : ''}, ${seconds ?? 'unknown'} s in its transaction`,
  )
  const why =
    who.length === 0
      ? 'No session blocks it'
      : `It waits for a lock of ${who.join('; ')}: end it with pg_terminate_backend`
  return {
    name,
    ok: false,
    detail: `The oldest write has waited ${Math.round(commitWaitMs / 1000)} s for its commit. ${why}`,
  }
}
