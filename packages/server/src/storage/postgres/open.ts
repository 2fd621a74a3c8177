import { randomUUID } from 'node:crypto'
import type { ClientBase } from 'pg'
import type { ActKind, DamagedPayload, DamagedRow } from '../sql/engine/sql.ts'
import { actMethods, runAct, type ActName } from '../sql/acts.ts'
import { batchAppender } from '../sql/record/append.ts'
import type { EventBatchRows } from '../record/events.ts'
import { isPacked, unpackBatch, type PackedBatch } from '../record/packed-batch.ts'
import { damageText } from '../sql/engine/checksum-checks.ts'
import { createPayloadSlices, MIB, type PayloadSlices, createWaitingCommits } from '../engine/store-checks.ts'
import { newestVersion } from '../sql/engine/migrations.ts'
import type { Storage } from '../storage.ts'
import { StorageError, type WriteRefusal, type StoreTrouble, type StoreWarning } from '../engine/store.ts'
import { parseAddress, openConnections, type Timeouts } from './connections.ts'
import { postgresAppendEngine, WRITERS_PER_NODE } from './append.ts'
import { createBatchQueue } from './batch-queue.ts'
import { isRace } from './errors.ts'
import { inspectDatabase } from './inspect.ts'
import { isCitus, knownMigrations, prepareStore } from './migrate.ts'
import { joinNodes } from './nodes.ts'
import { checkIdentity, type Identity, createReachability, type OnReachable, startProbe } from './reachability.ts'
import { postgresSql } from './sql.ts'

export interface PostgresOptions {
  url: string
  /** Connections in addition to one for heartbeats. */
  poolSize?: number
  timeouts?: Partial<Timeouts>
  queueBytes?: number
  waitMs?: number
  now?: () => number
  /** The node is not ready once the oldest write has waited this long for its commit. */
  commitWaitMs?: number
  onReachable?: OnReachable
  onWarning?: StoreWarning
  slices?: PayloadSlices
}

const TIMEOUTS: Timeouts = { connectMs: 10_000, statementMs: 20_000, lockMs: 10_000, idleInTransactionMs: 20_000 }
/** Attempts for a write that fails because of a concurrent one. */
const TRIES = 3
/** Limited because certificates, tokens of identity providers and signatures still depend on this machine's clock. */
const MAX_OFFSET_MS = 30_000
/** After the database's disk was full, writes are refused for this long. */
const FULL_MS = 5_000

const IN_KIND = { lookup: 'use', read: 'snapshot', write: 'transaction' } as const

export async function openPostgresStorage(options: PostgresOptions): Promise<Storage> {
  const {
    url,
    poolSize = 10,
    queueBytes = 64 * MIB,
    waitMs = 10_000,
    commitWaitMs = 30_000,
    onReachable = () => undefined,
    onWarning,
    slices = createPayloadSlices(),
  } = options
  const address = parseAddress(url)
  const timeouts = { ...TIMEOUTS, ...options.timeouts }
  await prepareStore(address, waitMs)
  const reachability = createReachability(onReachable)
  let identity: Identity | null = null
  const verify = async (client: ClientBase) => {
    if (identity !== null) await checkIdentity(client, identity)
  }
  const shared = { address: address.config, timeouts, reachability, verify }
  const connections = openConnections({ ...shared, size: poolSize })
  // A separate connection, because heartbeats and cache revisions must succeed even if all others are busy.
  const ownConnection = openConnections({ ...shared, size: 1 })
  const nodes = await joinNodes({
    connections: ownConnection,
    silentMs: timeouts.idleInTransactionMs,
    now: options.now ?? Date.now,
    onWarning,
  }).catch(async (error: unknown) => {
    await Promise.all([connections.end(), ownConnection.end()])
    throw error
  })
  let fullUntil = 0
  const isDistributed = await ownConnection.use(isCitus)
  const queue = createBatchQueue({
    queueBytes,
    // Reads get the remaining connections.
    transactions: Math.min(WRITERS_PER_NODE, Math.ceil(poolSize / 2)),
    openPipeline: connections.pipeline,
    commit: batchAppender(postgresAppendEngine(connections, nodes.slot, isDistributed), onWarning),
  })

  let actMs = 0
  const damaged = { damagedPayloads: 0, damagedSettings: 0 }
  const onDamage = (damagedThing: DamagedPayload | DamagedRow) => {
    damaged['table' in damagedThing ? 'damagedSettings' : 'damagedPayloads']++
    onWarning?.(...damageText(damagedThing))
  }

  const commits = createWaitingCommits()
  const call = (name: ActName, kind: ActKind, args: unknown[]): Promise<unknown> => {
    const done = reachability.untilAway(perform(name, kind, args))
    return kind === 'write' ? commits.during(done) : done
  }

  async function perform(name: ActName, kind: ActKind, args: unknown[]): Promise<unknown> {
    const through = name === 'controlRevision' ? ownConnection : connections
    for (let tries = 1; ; tries++) {
      let startedAt = performance.now()
      try {
        return await through[IN_KIND[kind]]((client) => {
          startedAt = performance.now()
          return runAct(postgresSql(client, onDamage), name, args)
        })
      } catch (error) {
        if (tries === TRIES || !(error instanceof StorageError && isRace(error.cause))) throw error
      } finally {
        if (kind === 'write') actMs += performance.now() - startedAt
      }
    }
  }

  function writesRefused(): WriteRefusal | null {
    if (!reachability.isReachable()) return 'storage_unavailable'
    if (performance.now() < fullUntil) return 'storage_full'
    return queue.isFull() ? 'overloaded' : null
  }

  function trouble(): StoreTrouble | null {
    const away = reachability.reason()
    if (away !== null) return { code: 'storage_unavailable', reason: away }
    if (performance.now() < fullUntil) return { code: 'storage_full', reason: "The database's disk is full" }
    const waiting = commits.trouble(commitWaitMs)
    if (waiting !== null) return waiting
    const offset = nodes.clockOffsetMs()
    if (Math.abs(offset) <= MAX_OFFSET_MS) return null
    const how = `${Math.round(Math.abs(offset) / 1000)} s ${offset > 0 ? 'behind' : 'ahead of'} the database's`
    return { code: 'storage_unavailable', reason: `The clock of this node is ${how}: synchronise it` }
  }

  async function appendEvents(batch: EventBatchRows | PackedBatch) {
    // Fail at once: the batch would wait behind batches of the same runs that the database does not answer.
    reachability.check()
    try {
      return await commits.during(
        reachability.batchUntilAway(queue.append(isPacked(batch) ? unpackBatch(batch) : batch)),
      )
    } catch (error) {
      if (error instanceof StorageError && error.code === 'storage_full') fullUntil = performance.now() + FULL_MS
      throw error
    }
  }

  const schema = newestVersion(knownMigrations())
  const installation = (await call('secret', 'write', ['installation', randomUUID()])) as string
  // Do not count the time of the start as time of a caller's acts.
  actMs = 0
  identity = { installation, schema }
  const probe = startProbe({ address: address.config, identity, reachability, commits })

  return {
    ...actMethods(call),
    engine: 'postgres',
    appendEvents,
    writesRefused,
    // Needs no query, because the probe knows.
    async ping() {
      reachability.check()
    },
    trouble,
    inspect: () =>
      inspectDatabase({
        connections: ownConnection,
        poolSize,
        nodes: nodes.alive(),
        queuedBytes: queue.counts.queuedBytes,
        queueBytes,
        schema,
        commitWaitMs: commits.oldestMs(),
        blockers: probe.blockers,
        slices,
      }),
    backup: async () => ({ ok: false, reason: 'unsupported' }),
    nodes: nodes.alive,
    clockOffsetMs: nodes.clockOffsetMs,
    damage: () => null,
    gauges: () => ({
      ...queue.counts,
      actMs,
      ...damaged,
      diskFreeBytes: null,
      freeBytes: null,
      storeBytes: nodes.databaseBytes(),
      commitWaitMs: commits.oldestMs(),
    }),
    async close() {
      await queue.idle()
      await probe.close()
      await nodes.leave()
      await Promise.all([connections.end(), ownConnection.end()])
    },
  }
}
