/**
 * How batches of events are stored, the same on every engine. Batches may share a transaction; a batch is never
 * divided.
 *
 *   together --committed--> answered
 *      |--lost a race--> together again, a few times
 *      |--the store failed--> each batch gets the error; nothing is stored
 *      `--an event cannot be stored--> each batch alone
 *                                         `--again--> try each event, roll back; then all but the failing ones together
 *
 * Rows are locked in one order: agents, envelopes, runs, models, tools, counts, rejections, names of agents, work;
 * within each by key. So overlapping batches on any number of nodes may wait for each other but never deadlock. Events
 * need no order, because the writer to a run holds its row.
 */
import type { EventBatchRows, EventVerdict, NewEvent } from '../../record/events.ts'
import { StorageError, type StoreWarning } from '../../engine/store.ts'
import { knownAgents } from '../runs/agents.ts'
import { knownStates, StaleCaches } from './append-state.ts'
import { knownEnvelopes } from './envelopes.ts'
import { rejectionRow, trimRejections } from './rejections.ts'
import { DECISIONS, failureBudgets } from './failed-runs.ts'
import { knownNames } from '../runs/known-names.ts'
import {
  candidatesOf,
  storeIn,
  type AppendCaches,
  type AppendTransaction,
  type Candidate,
  type Remembered,
} from './append-steps.ts'

export interface AppendEngine<Connection = never> {
  /**
   * The commit is durable when the promise resolves. `rollback`: a dry run. Removals from the environments of the
   * batches wait until it ends.
   */
  transaction<Result>(
    batches: readonly EventBatchRows[],
    end: 'commit' | 'rollback',
    work: (transaction: AppendTransaction) => Promise<Result>,
    on?: Connection,
  ): Promise<Result>
  isRace(error: unknown): boolean
  /** Whether the event, not the store, made the statement fail. */
  isDataError(error: unknown): boolean
  /** Returns a store failure as a StorageError, and any other error unchanged. */
  storageError(error: unknown): unknown
  /** How far the time of an agent's unchanged name may move before its row is updated. */
  agentRefreshMs: number
}

export type Committed = { verdicts: EventVerdict[] } | { error: unknown }

const TRIES = 10
const REJECTIONS_BETWEEN_TRIMS = 1_000

/** `onWarning` gets errors that reach no caller, because the failed work is tried again in another way. */
export function batchAppender<Connection>(engine: AppendEngine<Connection>, onWarning: StoreWarning = () => undefined) {
  const caches: AppendCaches = {
    agents: knownAgents(engine.agentRefreshMs),
    envelopes: knownEnvelopes(),
    names: knownNames(),
    states: knownStates(),
    budgets: failureBudgets(),
    decisionBudgets: failureBudgets(DECISIONS),
  }
  const untrimmed = new Map<string, number>()

  async function commit(batches: readonly EventBatchRows[], on?: Connection): Promise<Committed[]> {
    const committed = await together(batches, on)
    for (const { environmentId, rejections } of batches) await trim(environmentId, rejections.length)
    return committed
  }

  async function together(batches: readonly EventBatchRows[], on?: Connection): Promise<Committed[]> {
    try {
      return (await store(batches, 'commit', on)).map((verdicts) => ({ verdicts }))
    } catch (error) {
      const trouble = engine.storageError(error)
      if (trouble instanceof StorageError) return batches.map(() => ({ error: trouble }))
      const [batch] = batches
      if (batch && batches.length === 1) return [engine.isDataError(error) ? await storable(batch) : { error }]
      onWarning('a commit of several batches failed; each is tried alone', error)
      const committed: Committed[] = []
      for (const alone of batches) committed.push(...(await together([alone])))
      return committed
    }
  }

  async function storable(batch: EventBatchRows): Promise<Committed> {
    const { receivedAt } = batch
    const failing = new Set<NewEvent>()
    try {
      for (const event of batch.events) if (!(await isStorable(batch, event))) failing.add(event)
      const refused = [...failing].map((event) => rejectionRow(event, 'unstorable', receivedAt))
      const events = batch.events.filter((event) => !failing.has(event))
      const rejections = [...batch.rejections, ...refused]
      const [verdicts = []] = await store([{ ...batch, events, rejections }], 'commit')
      return { verdicts: batch.events.map((event) => (failing.has(event) ? 'unstorable' : verdicts.shift()!)) }
    } catch (error) {
      return { error: engine.storageError(error) }
    }
  }

  async function isStorable(batch: EventBatchRows, event: NewEvent): Promise<boolean> {
    try {
      await store([{ ...batch, events: [event], rejections: [] }], 'rollback')
      return true
    } catch (error) {
      if (!engine.isDataError(error)) throw error
      return false
    }
  }

  async function store(batches: readonly EventBatchRows[], end: 'commit' | 'rollback', on?: Connection) {
    for (let tries = 1; ; tries++) {
      try {
        const work = (transaction: AppendTransaction) => storeAll(transaction, batches)
        const { verdicts, remembered } = await engine.transaction(batches, end, work, on)
        if (end === 'rollback') caches.agents.forget()
        else await remember(remembered)
        return verdicts
      } catch (error) {
        caches.agents.forget()
        if (!(error instanceof StaleCaches) && !engine.isRace(error)) throw error
        if (tries === TRIES) throw new StorageError('storage_unavailable', 'A commit lost too many races', error)
      }
    }
  }

  async function remember(all: readonly Remembered[]): Promise<void> {
    for (const { environmentId, revision, agents, envelopes, buckets, renamed } of all) {
      if (caches.states.revisionOf(environmentId) !== revision) continue
      caches.agents.keep(agents)
      caches.envelopes.keep(envelopes)
      caches.names.keep(environmentId, buckets)
      if ((await Promise.all(renamed)).includes(false)) caches.agents.forget()
    }
  }

  async function storeAll(transaction: AppendTransaction, batches: readonly EventBatchRows[]) {
    const remembered: Remembered[] = []
    const candidates = new Map<EventBatchRows, Candidate[]>()
    for (const [environmentId, some] of Map.groupBy(batches, (batch) => batch.environmentId)) {
      for (const batch of some) candidates.set(batch, candidatesOf(batch))
      const all = some.flatMap((batch) => candidates.get(batch) ?? [])
      const rejections = some.flatMap((batch) => batch.rejections)
      remembered.push(await storeIn(caches, transaction, environmentId, all, rejections))
    }
    const verdicts = batches.map((batch) => (candidates.get(batch) ?? []).map(({ verdict }) => verdict ?? 'unstorable'))
    return { verdicts, remembered }
  }

  /** Trims in a separate transaction. If it fails, the next trim removes the rows. */
  async function trim(environmentId: string, added: number): Promise<void> {
    if (added === 0) return
    const count = (untrimmed.get(environmentId) ?? 0) + added
    untrimmed.set(environmentId, count % REJECTIONS_BETWEEN_TRIMS)
    if (count < REJECTIONS_BETWEEN_TRIMS) return
    await engine
      .transaction([], 'commit', ({ sql }) => trimRejections(sql, environmentId))
      .catch((error: unknown) => onWarning('old rejections could not be removed', error))
  }

  return commit
}
