/**
 * The processes that serve one store. Each has a slot, a small number that no other living node has. Rollup rows carry
 * it, so nodes do not wait for each other's rows. A silent node loses its slot to the next new node; if it wakes up, it
 * takes another. Two nodes briefly in one slot would only wait for each other.
 *
 *   (none) --join--> alive --beat, every BEAT_MS--> alive --silent for EXPIRY_MS, or leave--> (none)
 *
 * Slots and work leases use the database's clock. Its offset is measured with each heartbeat.
 */
import { randomUUID } from 'node:crypto'
import type { Client, PoolClient } from 'pg'
import type { StoreWarning } from '../engine/store.ts'
import type { Connections } from './connections.ts'
import { statement } from './sql.ts'

const BEAT_MS = 3_000
const EXPIRY_MS = 15_000
/** Rare, because measuring a large database reads the sizes of many files. */
const MEASURE_EVERY_BEATS = 20

const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'
const ALIVE = `(SELECT count(*) FROM nodes WHERE heartbeat_at > ${NOW} - ${EXPIRY_MS})`
const BEAT = statement(
  `UPDATE nodes SET heartbeat_at = ${NOW}, clock_offset_ms = $2 WHERE node_id = $1 RETURNING slot, ${ALIVE} AS alive, ${NOW} AS now`,
)
const EXPIRE = statement(`DELETE FROM nodes WHERE heartbeat_at <= ${NOW} - ${EXPIRY_MS}`)
const JOIN = statement(`INSERT INTO nodes (slot, node_id, started_at, heartbeat_at)
  SELECT (SELECT min(slot) FROM generate_series(0, (SELECT count(*) FROM nodes)) AS slot
    WHERE slot NOT IN (SELECT nodes.slot FROM nodes)), $1, ${NOW}, ${NOW}`)
const LEAVE = statement('DELETE FROM nodes WHERE node_id = $1')
/** Ends sessions of ours that wait for the rest of a statement: they hold rows, and no database timeout ends them. */
const END_HALF_SENT = statement(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE datname = current_database() AND usename = current_user AND application_name = current_setting('application_name')
  AND state = 'active' AND wait_event = 'ClientRead' AND state_change < clock_timestamp() - $1 * interval '1 millisecond'`)
const MEASURE = statement('SELECT pg_database_size(current_database()) AS bytes')

/** Slower answers are too inexact to set the clock, except for the first. */
const LONGEST_READING_MS = 1_000

/** The database's clock decides everything, but people and other programs still compare clocks. */
const MAX_SKEW_SECONDS = 1

/** The clock offset of each node, as that node measured it. */
export const CLOCKS = `SELECT slot, clock_offset_ms AS "offsetMs" FROM nodes
  WHERE heartbeat_at > ${NOW} - ${EXPIRY_MS} ORDER BY slot`

export interface NodeOptions {
  connections: Connections
  /** Any node ends sessions that are silent for this long. */
  silentMs: number
  now: () => number
  onWarning: StoreWarning | undefined
}

export async function aliveNodes(client: Pick<Client, 'query'>): Promise<number> {
  const { rows } = await client.query<{ alive: string }>(`SELECT ${ALIVE} AS alive`)
  return Number(rows[0]?.alive)
}

/** Smaller differences cannot be distinguished from the time of the query on a busy machine. */
const UNCERTAIN_MS = 500

export async function joinNodes({ connections, silentMs, now, onWarning }: NodeOptions) {
  const values = [randomUUID()]
  let place = { slot: 0, alive: 1 }
  let clockOffset: number | null = null
  let databaseBytes: number | null = null
  let beats = 0

  let beating: Promise<void> | null = null

  /** Concurrent callers share one heartbeat, so that heartbeats do not pile up while the database is silent. */
  const beat = (): Promise<void> => (beating ??= beatOnce().finally(() => (beating = null)))

  async function beatOnce(): Promise<void> {
    const nodeRows = await connections.use(async (client) => {
      if (beats++ % MEASURE_EVERY_BEATS === 0) {
        databaseBytes = (await client.query<{ bytes: number }>(MEASURE)).rows[0]?.bytes ?? null
      }
      return beatOn(client)
    })
    place = nodeRows ?? (await join())
  }

  async function beatOn(client: PoolClient): Promise<typeof place | undefined> {
    const asked = now()
    const [row] = (await client.query<typeof place & { now: number }>({ ...BEAT, values: [...values, clockOffset] }))
      .rows
    const answered = now()
    if (row && (clockOffset === null || answered - asked <= LONGEST_READING_MS)) {
      const offset = Math.round(row.now - (asked + answered) / 2)
      clockOffset = Math.abs(offset) <= UNCERTAIN_MS ? 0 : offset
    }
    return row && { slot: row.slot, alive: row.alive }
  }

  const endHalfSent = () => connections.use((client) => client.query({ ...END_HALF_SENT, values: [silentMs] }))

  function join(): Promise<typeof place> {
    return connections.transaction(async (client) => {
      await client.query('LOCK TABLE nodes IN EXCLUSIVE MODE')
      await client.query(EXPIRE)
      await client.query({ ...JOIN, values })
      return (await beatOn(client)) ?? place
    })
  }

  function warnOfClock(): void {
    const seconds = (clockOffset ?? 0) / 1000
    if (Math.abs(seconds) <= MAX_SKEW_SECONDS) return
    const how = `${Math.abs(seconds)} s ${seconds > 0 ? 'behind' : 'ahead of'} the database's`
    onWarning?.("the clock of this machine differs from the database's", new Error(`It is ${how}: synchronise it`))
  }

  await beat()
  // After a failed heartbeat, the next one tries again. The connections also report an unreachable database.
  const timer = setInterval(
    () =>
      void beat()
        .then(endHalfSent)
        .then(warnOfClock)
        .catch((error: unknown) => onWarning?.('a heartbeat of this node failed', error)),
    BEAT_MS,
  )

  return {
    slot: () => place.slot,
    alive: () => Math.max(1, place.alive),
    databaseBytes: () => databaseBytes,
    clockOffsetMs: () => clockOffset ?? 0,
    async leave(): Promise<void> {
      clearInterval(timer)
      await connections.use((client) => client.query({ ...LEAVE, values })).catch(() => undefined)
    },
  }
}
