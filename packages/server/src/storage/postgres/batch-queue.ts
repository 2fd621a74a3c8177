/**
 * Batches on their way to a commit. Waiting batches of one environment share a transaction; environments never share
 * one, because on Citus they may be on different machines. Workspaces take turns, in a workspace its environments, and
 * in an environment its keys, so that none waits for the whole backlog of another.
 *
 *   batch: waiting --its runs are free--> in a transaction --the commit is sent--> committing --ended--> answered
 *
 * A batch waits while a transaction of this node, or a batch before it, writes to one of its runs. Once a commit has
 * been sent, a transaction of the same runs follows it on the same connection. So transactions of one node never wait
 * for each other's rows, the database never waits for this process between two of them, and no batch is overtaken by
 * another one of the same run and key, unless it fails and is tried again.
 */
import type { EventBatchRows, EventVerdict } from '../record/events.ts'
import type { Committed } from '../sql/record/append.ts'
import { batchBytes } from '../record/packed-batch.ts'
import { StorageError } from '../engine/store.ts'
import { TurnsByWorkspace, type Holder } from '../engine/turns-by-workspace.ts'

/** Fewer than a node can run, so that another workspace always finds a free one. */
const TRANSACTIONS_PER_WORKSPACE = 4
/** Enough to share the cost of a commit, and few enough that the batches behind do not wait long. */
const EVENTS_PER_COMMIT = 1_000
const BYTES_PER_COMMIT = 8 * 1_048_576
/** While SMALL_TRANSACTIONS are running, fewer events than this wait for the next transaction. */
const EVENTS_WORTH_A_COMMIT = 400
/** Two, so that the database works on one while Node builds the statements of the other. */
const SMALL_TRANSACTIONS = 2

export interface BatchQueueOptions<Pipeline> {
  queueBytes: number
  transactions: number
  openPipeline(): Pipeline
  /** Never rejects. Calls `onSent` when another transaction may follow in the same pipeline. */
  commit(batches: EventBatchRows[], on: { pipeline: Pipeline; onSent(): void }): Promise<Committed[]>
}

interface Queued {
  batch: EventBatchRows
  bytes: number
  runs: Set<string>
  /** One more than the turn of the key's previous batch. */
  turn: number
  settle(committed: Committed | undefined): void
}

interface Environment<Pipeline> {
  /** Batches take turns by workspace, and by environment in place of a credential. */
  holder: Holder
  /** Waiting batches, by turn, then by arrival. */
  waiting: Queued[]
  transactions: Set<Transaction<Pipeline>>
  turn: number
  lastTurns: Map<string, number>
}

interface Transaction<Pipeline> {
  pipeline: Pipeline
  runs: Set<string>
  isSent: boolean
}

export function createBatchQueue<Pipeline>(options: BatchQueueOptions<Pipeline>) {
  const { queueBytes, transactions, openPipeline, commit } = options
  const environments = new Map<string, Environment<Pipeline>>()
  /** Environments with waiting batches. */
  const turns = new TurnsByWorkspace<Environment<Pipeline>>()
  const activeByWorkspace = new Map<string, number>()
  const counts = { queuedBytes: 0, commits: 0, committedEvents: 0 }
  let active = 0
  let isDue = false
  let onIdle: (() => void) | null = null
  const isFull = () => counts.queuedBytes >= queueBytes

  async function append(batch: EventBatchRows): Promise<EventVerdict[]> {
    const { environmentId, events, rejections } = batch
    const { workspace, credential } = batch.holder ?? { workspace: environmentId, credential: '' }
    if (events.length === 0 && rejections.length === 0) return []
    const bytes = batchBytes(batch)
    if (isFull() || (counts.queuedBytes > 0 && counts.queuedBytes + bytes > queueBytes)) {
      throw new StorageError('overloaded', 'Too many events wait for a commit')
    }
    counts.queuedBytes += bytes
    const { promise, resolve, reject } = Promise.withResolvers<EventVerdict[]>()
    let environment = environments.get(environmentId)
    if (environment === undefined) {
      const holder = { workspace, credential: environmentId }
      environment = { holder, waiting: [], transactions: new Set(), turn: 0, lastTurns: new Map() }
      environments.set(environmentId, environment)
    }
    const { waiting, lastTurns } = environment
    const turn = Math.max(environment.turn, (lastTurns.get(credential) ?? -1) + 1)
    lastTurns.set(credential, turn)
    if (waiting.length === 0) turns.push(environment)
    waiting.splice(waiting.findLastIndex((other) => other.turn <= turn) + 1, 0, {
      batch,
      bytes,
      runs: new Set(events.map(({ runId }) => runId)),
      turn,
      settle(committed = { error: new Error('No answer for a batch') }) {
        counts.queuedBytes -= bytes
        if ('error' in committed) reject(committed.error)
        else resolve(committed.verdicts)
      },
    })
    startSoon()
    return promise
  }

  /** Starts after the requests that arrived with this one, so that they share a commit. */
  function startSoon(): void {
    if (!isDue) setImmediate(start)
    isDue = true
  }

  /** Starts one transaction in each turn of the event loop, because encoding its rows takes a millisecond. */
  function start(): void {
    isDue = false
    if (active >= transactions) return
    let next: Taken<Pipeline> = { taken: [], pipeline: null }
    const environment = turns.shift((candidate) => {
      if (activeOf(candidate) >= TRANSACTIONS_PER_WORKSPACE) return false
      next = take(candidate, transactions - active)
      return next.taken.length > 0
    })
    if (environment === null) return
    if (environment.waiting.length > 0) turns.push(environment)
    void perform(environment, next.taken, next.pipeline ?? openPipeline())
    startSoon()
  }

  const activeOf = ({ holder }: Environment<Pipeline>) => activeByWorkspace.get(holder.workspace) ?? 0

  async function perform(environment: Environment<Pipeline>, taken: Queued[], pipeline: Pipeline): Promise<void> {
    const { workspace, credential: environmentId } = environment.holder
    const runs = new Set(taken.flatMap((queued) => [...queued.runs]))
    const transaction = { pipeline, runs, isSent: false }
    active++
    activeByWorkspace.set(workspace, activeOf(environment) + 1)
    environment.transactions.add(transaction)
    const onSent = () => {
      transaction.isSent = true
      startSoon()
    }
    const committed = await commit(
      taken.map(({ batch }) => batch),
      { pipeline, onSent },
    )
    active--
    activeByWorkspace.set(workspace, activeOf(environment) - 1)
    if (activeOf(environment) === 0) activeByWorkspace.delete(workspace)
    environment.transactions.delete(transaction)
    const stored = taken.filter((_, index) => 'verdicts' in (committed[index] ?? {}))
    if (stored.length > 0) counts.commits++
    for (const { batch } of stored) counts.committedEvents += batch.events.length
    if (environment.transactions.size === 0 && environment.waiting.length === 0) environments.delete(environmentId)
    taken.forEach(({ settle }, index) => settle(committed[index]))
    if (environments.size === 0) onIdle?.()
    startSoon()
  }

  return {
    append,
    isFull,
    counts,
    async idle(): Promise<void> {
      if (environments.size > 0) await new Promise<void>((resolve) => (onIdle = resolve))
    },
  }
}

interface Taken<Pipeline> {
  taken: Queued[]
  /** The pipeline of the transaction that these batches must follow. */
  pipeline: Pipeline | null
}

/** `free`: how many transactions may begin now. */
function take<Pipeline>(environment: Environment<Pipeline>, free: number): Taken<Pipeline> {
  const { waiting, transactions } = environment
  const [taken, left]: [Queued[], Queued[]] = [[], []]
  const total = waiting.reduce((sum, { batch }) => sum + batch.events.length, 0)
  if (total < EVENTS_WORTH_A_COMMIT && transactions.size >= SMALL_TRANSACTIONS) return { taken, pipeline: null }
  const share = Math.max(EVENTS_WORTH_A_COMMIT, total / free)
  const blocked = new Set<string>()
  const runs = new Set<string>()
  let pipeline: Pipeline | null = null
  let [events, bytes] = [0, 0]
  for (const queued of waiting) {
    const isWorthIt = events < share || !queued.runs.isDisjointFrom(runs)
    const fits =
      taken.length === 0 ||
      (events + queued.batch.events.length <= EVENTS_PER_COMMIT && bytes + queued.bytes <= BYTES_PER_COMMIT)
    const before = pipelineBefore(transactions, queued.runs)
    const isFree = before !== 'busy' && (before === null || pipeline === null || before === pipeline)
    if (isWorthIt && fits && isFree && queued.runs.isDisjointFrom(blocked)) {
      taken.push(queued)
      pipeline ??= before
      events += queued.batch.events.length
      bytes += queued.bytes
      for (const run of queued.runs) runs.add(run)
    } else {
      left.push(queued)
      for (const run of queued.runs) blocked.add(run)
    }
  }
  environment.waiting = left
  environment.turn = Math.max(environment.turn, taken[0]?.turn ?? 0)
  return { taken, pipeline }
}

/** The pipeline of the transaction that writes to these runs. `busy`: nothing can follow that transaction now. */
function pipelineBefore<Pipeline>(
  transactions: ReadonlySet<Transaction<Pipeline>>,
  runs: ReadonlySet<string>,
): Pipeline | 'busy' | null {
  const pipelines = new Set<Pipeline>()
  for (const transaction of transactions)
    if (!transaction.runs.isDisjointFrom(runs)) pipelines.add(transaction.pipeline)
  const [pipeline = null] = pipelines
  const isBusy = pipelines.size > 1 || [...transactions].some((one) => one.pipeline === pipeline && !one.isSent)
  return isBusy ? 'busy' : pipeline
}
