/**
 * Whether the database answers. Everybody asks here, so that nobody waits for a database that is away.
 *
 *   here --cannot connect--> away --pause over--> retried by the next request --connected--> here
 *     |                       ^------------------------cannot connect----'
 *     +--the probe's statement is late, or its answer is not ours--> away --the probe's answer is ours--> here
 *
 * While it is away, requests fail at once, and those under way end too: reads at once, batches after BATCH_MS, because
 * the database may still answer. Pauses double up to LONGEST_PAUSE_MS. Only the probe's own answer ends what it found.
 */
import { DatabaseError, type ClientBase } from 'pg'
import { StorageError, StoreAway } from '../engine/store.ts'
import { connectError } from './errors.ts'

export type Reachability = ReturnType<typeof createReachability>
/** `refused`: calls that failed while it was away. */
export type OnReachable = (reachable: boolean, facts: { why: string; seconds?: number; refused?: number }) => void

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1_000
const BATCH_MS = 5_000
const CANNOT_CONNECT = 'The database cannot be reached'

export function createReachability(onChange: OnReachable) {
  let failures = 0
  let silentUntil = 0
  let lastFailure: unknown = null
  /** The probe's. */
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

  /** Ends the wait, not the work: the connection is used until the database answers, or is closed. */
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
    /** Returns the error for the caller. */
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

/** The message is for clients. */
class OtherDatabase extends Error {}

/** What the store's database says of itself. */
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

export async function readIdentity(client: ClientBase): Promise<Identity | null> {
  try {
    return (await client.query<Identity>(IDENTITY_QUERY)).rows[0] ?? null
  } catch (error) {
    if (error instanceof DatabaseError && error.code === UNDEFINED_TABLE) return null
    throw error
  }
}

export function otherDatabase(otherIdentity: Identity | null, { installation, schema }: Identity): string | null {
  if (otherIdentity === null || otherIdentity.installation === null)
    return 'The database has no store of this installation: it is empty'
  if (otherIdentity.installation !== installation) return 'The database belongs to another installation'
  if (otherIdentity.schema < schema)
    return `The database has schema ${otherIdentity.schema}, and this node knows ${schema}: it is an older copy`
  return null
}
