/**
 * Batches on their way to a commit. Those of one environment that wait share a transaction; environments take turns and
 * never share one, because on Citus they may lie on different machines.
 *
 *   batch: waiting --its runs are free--> in a transaction --ended--> answered
 *
 * A batch waits while a transaction of this node, or a batch before it, writes to one of its runs. So transactions of one
 * node never wait for each other's rows, and no batch is overtaken by another one of the same run.
 */
import type { EventBatchRows, EventVerdict } from '../events.ts'
import { batchBytes, type Committed } from '../sql/append.ts'
import { StorageError } from '../storage.ts'

/** As many connections one tenant may use for writing at once. */
const TRANSACTIONS_PER_ENVIRONMENT = 4
/** Enough that what a commit costs weighs little, few enough that those behind do not wait long. */
const EVENTS_PER_COMMIT = 1_000
const BYTES_PER_COMMIT = 8 * 1_048_576
/** Fewer are not worth a transaction of their own. */
const EVENTS_WORTH_A_COMMIT = 200

export interface BatchQueueOptions {
  queueBytes: number
  /** Transactions at once, over all environments. */
  transactions: number
  /** Never rejects. */
  commit: (batches: EventBatchRows[]) => Promise<Committed[]>
}

interface Queued {
  batch: EventBatchRows
  bytes: number
  runs: Set<string>
  settle(committed: Committed | undefined): void
}

interface Environment {
  waiting: Queued[]
  transactions: number
  /** Runs that transactions write to. */
  held: Set<string>
}

export function createBatchQueue({ queueBytes, transactions, commit }: BatchQueueOptions) {
  const environments = new Map<string, Environment>()
  const counts = { queuedBytes: 0, commits: 0, committedEvents: 0 }
  let active = 0
  let isDue = false
  let onIdle: (() => void) | null = null
  const isFull = () => counts.queuedBytes >= queueBytes

  async function append(batch: EventBatchRows): Promise<EventVerdict[]> {
    const { environmentId, events, rejections } = batch
    if (events.length === 0 && rejections.length === 0) return []
    const bytes = batchBytes(batch)
    if (isFull() || (counts.queuedBytes > 0 && counts.queuedBytes + bytes > queueBytes)) {
      throw new StorageError('overloaded', 'Too many events wait for a commit')
    }
    counts.queuedBytes += bytes
    const { promise, resolve, reject } = Promise.withResolvers<EventVerdict[]>()
    let environment = environments.get(environmentId)
    if (environment === undefined) {
      environments.set(environmentId, (environment = { waiting: [], transactions: 0, held: new Set() }))
    }
    environment.waiting.push({
      batch,
      bytes,
      runs: new Set(events.map(({ runId }) => runId)),
      settle(committed = { error: new Error('No answer for a batch') }) {
        counts.queuedBytes -= bytes
        if ('error' in committed) reject(committed.error)
        else resolve(committed.verdicts)
      },
    })
    startSoon()
    return promise
  }

  /** After the requests that have arrived with this one, so that they share a commit. */
  function startSoon(): void {
    if (!isDue) setImmediate(start)
    isDue = true
  }

  /** Starts one transaction in each turn of the event loop, because encoding its rows takes a millisecond. */
  function start(): void {
    isDue = false
    if (active >= transactions) return
    for (const [environmentId, environment] of environments) {
      const taken = take(environment, transactions - active)
      if (taken.length === 0) continue
      // To the end: others come first the next time.
      environments.delete(environmentId)
      environments.set(environmentId, environment)
      void perform(environmentId, environment, taken)
      startSoon()
      return
    }
  }

  async function perform(environmentId: string, environment: Environment, taken: Queued[]): Promise<void> {
    active++
    environment.transactions++
    const committed = await commit(taken.map(({ batch }) => batch))
    active--
    environment.transactions--
    const stored = taken.filter((_, index) => 'verdicts' in (committed[index] ?? {}))
    if (stored.length > 0) counts.commits++
    for (const { batch } of stored) counts.committedEvents += batch.events.length
    for (const { runs } of taken) for (const run of runs) environment.held.delete(run)
    if (environment.transactions === 0 && environment.waiting.length === 0) environments.delete(environmentId)
    taken.forEach(({ settle }, index) => settle(committed[index]))
    if (environments.size === 0) onIdle?.()
    startSoon()
  }

  return {
    append,
    isFull,
    counts,
    /** Resolves when nothing waits or is written any more. */
    async idle(): Promise<void> {
      if (environments.size > 0) await new Promise<void>((resolve) => (onIdle = resolve))
    },
  }
}

/**
 * Takes waiting batches that are worth a transaction, and holds their runs; those that could not run beside them either.
 * `free`: transactions that may begin now.
 */
function take(environment: Environment, free: number): Queued[] {
  if (environment.transactions >= TRANSACTIONS_PER_ENVIRONMENT) return []
  const total = environment.waiting.reduce((sum, { batch }) => sum + batch.events.length, 0)
  const share = Math.max(EVENTS_WORTH_A_COMMIT, total / free)
  const blocked = new Set(environment.held)
  const runs = new Set<string>()
  const [taken, left]: [Queued[], Queued[]] = [[], []]
  let [events, bytes] = [0, 0]
  for (const queued of environment.waiting) {
    const isWorthIt = events < share || !queued.runs.isDisjointFrom(runs)
    const fits =
      taken.length === 0 ||
      (events + queued.batch.events.length <= EVENTS_PER_COMMIT && bytes + queued.bytes <= BYTES_PER_COMMIT)
    if (isWorthIt && fits && queued.runs.isDisjointFrom(blocked)) {
      taken.push(queued)
      events += queued.batch.events.length
      bytes += queued.bytes
      for (const run of queued.runs) runs.add(run)
    } else {
      left.push(queued)
      for (const run of queued.runs) blocked.add(run)
    }
  }
  environment.waiting = left
  for (const run of runs) environment.held.add(run)
  return taken
}
