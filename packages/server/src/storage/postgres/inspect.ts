import { checkPayloads, payloadsCheck } from '../sql/damage.ts'
import { CHECKED_BYTES, mib, queueCheck, tooLargeToCheck } from '../store-checks.ts'
import type { StoreCheck } from '../store.ts'
import type { Connections } from './connections.ts'
import { postgresSql } from './sql.ts'

export interface Inspected {
  connections: Connections
  poolSize: number
  nodes: number
  queuedBytes: number
  queueBytes: number
  schema: number
}

interface Facts extends Record<'version' | 'synchronousCommit' | 'fsync' | 'fullPageWrites', string> {
  maxConnections: number
  openConnections: number
  now: number
  schema: number
  bytes: number
}

const NEWEST_TESTED_MAJOR = 18
/** Nodes compare expiry times and limits. */
const MAX_SKEW_MS = 1_000

const FACTS = `SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync,
    current_setting('synchronous_commit') AS "synchronousCommit",
    current_setting('full_page_writes') AS "fullPageWrites",
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
      AS "maxConnections",
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS "openConnections",
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now,
    (SELECT max(version) FROM migrations) AS schema, pg_database_size(current_database()) AS bytes`

export async function inspectDatabase(inspected: Inspected): Promise<StoreCheck[]> {
  const { connections, poolSize, nodes } = inspected
  const { facts, skewMs } = await connections.use(async (client) => {
    const asked = Date.now()
    const [found] = (await client.query<Facts>(FACTS)).rows
    if (found === undefined) throw new Error('The database returned no row')
    return { facts: found, skewMs: Math.round(found.now - (asked + Date.now()) / 2) }
  })
  const { version, synchronousCommit, fsync, fullPageWrites, maxConnections, openConnections, bytes, schema } = facts
  const isTried = Number.parseInt(version, 10) <= NEWEST_TESTED_MAJOR
  const isDurable = synchronousCommit !== 'off' && fsync === 'on' && fullPageWrites === 'on'
  const settings = `synchronous_commit ${synchronousCommit}, fsync ${fsync}, full_page_writes ${fullPageWrites}`
  const wanted = (poolSize + 1) * nodes
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
    {
      name: 'connections',
      ok: wanted <= maxConnections,
      detail: `${openConnections} of ${maxConnections} are open; ${nodes} nodes may open ${wanted}`,
    },
    {
      name: 'clock',
      ok: Math.abs(skewMs) <= MAX_SKEW_MS,
      detail: `The clock of the database is ${Math.abs(skewMs)} ms ${skewMs < 0 ? 'behind' : 'ahead of'} this node's`,
    },
    queueCheck(inspected, ' on this node'),
    {
      name: 'schema',
      // A newer schema comes from a newer node: an upgrade is in progress.
      ok: schema === inspected.schema,
      detail: `The store has schema ${schema}, ${mib(bytes)}; this node knows ${inspected.schema}`,
    },
    bytes > CHECKED_BYTES
      ? tooLargeToCheck('payloads', bytes)
      : payloadsCheck(await checkPayloads((work) => connections.snapshot((client) => work(postgresSql(client))))),
  ]
}
