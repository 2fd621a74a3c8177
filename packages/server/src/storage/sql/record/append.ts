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
import { addRepeated } from '../../record/completeness.ts'
import type { EventBatchRows, EventVerdict, NewEvent, RejectionRow, ImportedRun } from '../../record/events.ts'
import { StorageError, type StoreWarning } from '../../engine/store.ts'
import { knownAgents, renameAgent, type KnownAgent } from '../runs/agents.ts'
import { ownText, type OpenRows } from './known-rows.ts'
import { knownStates, StaleCaches } from './append-state.ts'
import { noCounts, countEvent, usedNames, writeCounts } from '../runs/usage-counts.ts'
import { knownEnvelopes, type TakeNumbers } from './envelopes.ts'
import { isSameEvent, type PlacedEvent, type SoughtEvent } from './stored-columns.ts'
import { countRejected, keepRejections, rejectionRow, trimRejections } from './rejections.ts'
import { addEvent, isLateInRun, noteGaps, type Opening, type RunState } from './run-state.ts'
import { failureBudgets, noteFailedRun, queueFailedRuns, type FailedRuns, findJoining } from './failed-runs.ts'
import { knownNames, storeNames, type Buckets } from '../runs/known-names.ts'
import { noteApprovals, type NotedEvent } from '../approvals/approval-notes.ts'
import { addScores, type ScoredEvent } from '../runs/scores.ts'
import { markRuns } from '../runs/search-index.ts'
import { enqueueWork } from '../engine/work.ts'
import type { Sql } from '../engine/sql.ts'

export interface WantedRun {
  runId: string
  /** Null: only look it up. */
  opening: Opening | null
  /** Distinct, in order of arrival. */
  events: NewEvent[]
}

export interface AppendTransaction {
  sql: Sql
  /** No concurrent transaction uses this number for its rollup rows. */
  slot: number
  takeNumbers: TakeNumbers
  forgetRuns(): void
  /** Statements that nothing awaits before the commit. If one fails, nothing is committed. */
  atCommit(statement: Promise<unknown>): void
  /** By external id; the ids are sorted. Runs neither found nor opened are missing. */
  openRuns(environmentId: string, wanted: readonly WantedRun[]): Promise<ReadonlyMap<string, RunState>>
  /**
   * Event ids are distinct. Returns the seq of each; null: it was already stored. The first stored event with a session
   * names it for its run, because the rows of the next ones then leave it out.
   */
  insertEvents(environmentId: string, events: readonly PlacedEvent[]): Promise<(number | null)[]>
  /** Null: none is stored. */
  compareEvents(environmentId: string, events: readonly SoughtEvent[]): Promise<(boolean | null)[]>
  changeRuns(environmentId: string, runs: readonly RunState[]): Promise<unknown>
}

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
  /** The event, not the store, made the statement fail. */
  isDataError(error: unknown): boolean
  /** A store failure as a StorageError; any other error unchanged. */
  storageError(error: unknown): unknown
  /** How far the time of an agent's unchanged name may move before its row is updated. */
  agentRefreshMs: number
}

export type Committed = { verdicts: EventVerdict[] } | { error: unknown }

const TRIES = 10
const REJECTIONS_BETWEEN_TRIMS = 1_000
/** Most gaps that are filled again, by a retry or the spool of a dead process, are filled by then. */
const GAPS_SETTLE_MS = 60_000

interface Candidate {
  event: NewEvent
  receivedAt: number
  importing: ImportedRun | null
  keyFamily: string | null
  agent: KnownAgent | null
  envelope: number
  /** A score of a run that another event opens; it names no agent. */
  isJoining: boolean
  /** The first storable event of that id; null: none is storable. */
  first: Candidate | null
  verdict: EventVerdict | null
}

const eventOf = ({ event }: Candidate): NewEvent => event

interface Noted {
  environmentId: string
  /** Counts removals from the environment. The other fields are cached only if it has not changed. */
  revision: number
  agents: OpenRows<KnownAgent>
  envelopes: OpenRows<number>
  buckets: Buckets
  /** False if another node knows a newer name. */
  renamed: Promise<boolean>[]
}

/** `onWarning` gets errors that no caller sees, because the failed work is retried differently. */
export function batchAppender<Connection>(engine: AppendEngine<Connection>, onWarning: StoreWarning = () => undefined) {
  const known = { agents: knownAgents(engine.agentRefreshMs), envelopes: knownEnvelopes(), names: knownNames() }
  const states = knownStates()
  const budgets = failureBudgets()
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
        const { verdicts, noted } = await engine.transaction(batches, end, work, on)
        if (end === 'rollback') known.agents.forget()
        else await keep(noted)
        return verdicts
      } catch (error) {
        known.agents.forget()
        if (!(error instanceof StaleCaches) && !engine.isRace(error)) throw error
        if (tries === TRIES) throw new StorageError('storage_unavailable', 'A commit lost too many races', error)
      }
    }
  }

  async function keep(noted: readonly Noted[]): Promise<void> {
    for (const { environmentId, revision, agents, envelopes, buckets, renamed } of noted) {
      if (states.revisionOf(environmentId) !== revision) continue
      known.agents.keep(agents)
      known.envelopes.keep(envelopes)
      known.names.keep(environmentId, buckets)
      if ((await Promise.all(renamed)).includes(false)) known.agents.forget()
    }
  }

  async function storeAll(transaction: AppendTransaction, batches: readonly EventBatchRows[]) {
    const noted: Noted[] = []
    const candidates = new Map<EventBatchRows, Candidate[]>()
    for (const [environmentId, some] of Map.groupBy(batches, (batch) => batch.environmentId)) {
      for (const batch of some) candidates.set(batch, candidatesOf(batch))
      const all = some.flatMap((batch) => candidates.get(batch) ?? [])
      const rejections = some.flatMap((batch) => batch.rejections)
      noted.push(await storeIn(transaction, environmentId, all, rejections))
    }
    const verdicts = batches.map((batch) => (candidates.get(batch) ?? []).map(({ verdict }) => verdict ?? 'unstorable'))
    return { verdicts, noted }
  }

  async function storeIn(
    transaction: AppendTransaction,
    environmentId: string,
    candidates: Candidate[],
    rejections: readonly RejectionRow[],
  ): Promise<Noted> {
    const { sql, slot, atCommit, takeNumbers } = transaction
    const forget = () => {
      known.agents.forget()
      known.envelopes.forget()
      transaction.forgetRuns()
    }
    const { erased, confirm } = await states.check(sql, environmentId, candidates.map(eventOf), forget)
    for (const index of erased) candidates[index]!.verdict = 'erased'
    const named = candidates.filter(({ event, verdict }) => !event.onlyIfStored && verdict !== 'erased')
    const events = named.map(eventOf)
    const joining = await findJoining(sql, environmentId, events)
    for (const candidate of named) candidate.isJoining = joining.has(candidate.event)
    const acting = named.filter(({ isJoining }) => !isJoining)
    const { receivedAt: openedAt = 0 } = candidates[0] ?? {}
    const agents = await known.agents.open(sql, environmentId, acting.map(eventOf), openedAt)
    acting.forEach((candidate, index) => (candidate.agent = agents.ofEvent[index] ?? null))
    const envelopes = await known.envelopes.open(sql, environmentId, events, takeNumbers)
    named.forEach((candidate, index) => (candidate.envelope = envelopes.ofEvent[index] ?? 0))
    const wanted = wantedRuns(candidates, rejections)
    const [runs, { revision, isSearched }] = await Promise.all([
      wanted.length > 0 ? transaction.openRuns(environmentId, wanted) : new Map<string, RunState>(),
      confirm(),
    ])
    const changed = new Set<RunState>()
    const counts = noCounts()
    const renames = new Map<KnownAgent, NewEvent>()
    const failed: FailedRuns = new Map()
    const scored: ScoredEvent[] = []
    const noted: NotedEvent[] = []

    const firsts: Candidate[] = []
    const placed: PlacedEvent[] = []
    for (const candidate of candidates) {
      const { first, event, receivedAt, envelope } = candidate
      if (first !== candidate) continue
      const run = runs.get(event.runId)
      if (run === undefined) {
        if (candidate.isJoining) throw new StaleCaches('The run of a score was removed meanwhile')
        throw new Error('A run was not opened before its events')
      }
      if (candidate.importing === null && isLateInRun(run, event, receivedAt)) {
        candidate.verdict = 'absent'
        continue
      }
      firsts.push(candidate)
      placed.push({ run, event, receivedAt, envelope })
    }
    const seqs = placed.length > 0 ? await transaction.insertEvents(environmentId, placed) : []
    placed.forEach(({ run, event }, index) => {
      const [seq = null, candidate] = [seqs[index], firsts[index]]
      if (seq === null || candidate === undefined) return
      candidate.verdict = 'stored'
      countEvent(counts, run, event)
      if (seq > run.openedEvents) addEvent(run, seq, event)
      // An export has the issues of its runs.
      if (candidate.importing === null) noteFailedRun(failed, run, seq, event)
      changed.add(run)
      if (event.score !== null) scored.push({ run: run.id, event })
      const { keyFamily } = candidate
      if (event.approval !== null && keyFamily !== null) noted.push({ event, note: event.approval, keyFamily })
      if (candidate.agent !== null && known.agents.note(candidate.agent, event)) renames.set(candidate.agent, event)
    })

    for (const { candidate, run, isSame } of await compareRepeats(transaction, environmentId, candidates, runs)) {
      candidate.verdict = isSame || candidate.importing === null ? 'duplicate' : 'differing'
      if (addRepeated(run.recorders, candidate.event, ownText)) changed.add(run)
      if (isSame || candidate.importing !== null) continue
      run.differingRetries++
      changed.add(run)
    }
    for (const candidate of candidates) candidate.verdict ??= candidate.event.onlyIfStored ? 'absent' : 'unstorable'
    const refused = [...rejections, ...candidates.flatMap(refusedByStore)]
    for (const run of await countRejected(sql, environmentId, refused, runs)) changed.add(run)
    for (const run of changed) noteGaps(run)
    const at = candidates[0]?.receivedAt ?? rejections[0]?.rejectedAt ?? 0
    const gaps = [...changed].flatMap(({ id, hasNewGaps }) => {
      return hasNewGaps ? { kind: 'tell_gaps' as const, environmentId, subjectId: id, dueAt: at + GAPS_SETTLE_MS } : []
    })

    if (changed.size > 0) {
      const byRunId = [...changed].toSorted((a, b) => (a.runId < b.runId ? -1 : 1))
      atCommit(transaction.changeRuns(environmentId, byRunId))
      if (isSearched === 1) atCommit(markRuns(sql, environmentId, changed, at))
    }
    if (scored.length > 0) await addScores(sql, environmentId, scored)
    const buckets = await known.names.bucketsOf(sql, environmentId, usedNames(counts))
    storeNames(sql, environmentId, buckets).forEach(atCommit)
    writeCounts(sql, environmentId, counts, buckets, slot).forEach(atCommit)
    if (refused.length > 0) atCommit(keepRejections(sql, environmentId, refused))
    const renamed = [...renames]
      .toSorted(([a], [b]) => (a.id < b.id ? -1 : 1))
      .map(([{ id }, { agentName, time }]) => renameAgent(sql, environmentId, id, agentName, time))
    renamed.forEach(atCommit)
    if (gaps.length > 0) atCommit(enqueueWork(sql, gaps))
    if (failed.size > 0) atCommit(queueFailedRuns(sql, environmentId, budgets.within(environmentId, failed, at), at))
    // Last, because it locks the revision of approvals.
    if (noted.length > 0) await noteApprovals(sql, environmentId, noted, at)
    return { environmentId, revision, agents, envelopes, buckets, renamed }
  }

  /** In a separate transaction. The next trim removes what one leaves. */
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

interface Repeat {
  candidate: Candidate
  run: RunState
  isSame: boolean
}

async function compareRepeats(
  transaction: AppendTransaction,
  environmentId: string,
  candidates: readonly Candidate[],
  runs: ReadonlyMap<string, RunState>,
): Promise<Repeat[]> {
  const repeats: Repeat[] = []
  const doubtful: { candidate: Candidate; sought: SoughtEvent }[] = []
  for (const candidate of candidates) {
    const { first, event, verdict } = candidate
    const run = runs.get(event.runId)
    if (verdict !== null || run === undefined) continue
    if (first?.verdict === 'stored') repeats.push({ candidate, run, isSame: isSameEvent(first.event, event) })
    else doubtful.push({ candidate, sought: { run, event } })
  }
  if (doubtful.length === 0) return repeats
  const sought = doubtful.map((one) => one.sought)
  const same = await transaction.compareEvents(environmentId, sought)
  doubtful.forEach(({ candidate, sought: { run } }, index) => {
    const isSame = same[index] ?? null
    if (isSame !== null) repeats.push({ candidate, run, isSame })
  })
  return repeats
}

function candidatesOf({ receivedAt, events, importing, keyFamily }: EventBatchRows): Candidate[] {
  const batch = { receivedAt, importing: importing ?? null, keyFamily: keyFamily ?? null }
  const none = { agent: null, envelope: 0, isJoining: false, first: null, verdict: null }
  return events.map((event) => ({ event, ...batch, ...none }))
}

/** Sorted by run id, so that all transactions lock runs in one order. Marks the first candidate of each event id. */
function wantedRuns(candidates: readonly Candidate[], rejections: readonly RejectionRow[]): WantedRun[] {
  const runs = new Map<string, WantedRun & { firsts: Map<string, Candidate> }>()
  for (const candidate of candidates) {
    const { event, agent, receivedAt, importing } = candidate
    if (candidate.verdict === 'erased') continue
    let run = runs.get(event.runId)
    if (run === undefined) {
      run = { runId: event.runId, opening: null, events: [], firsts: new Map() }
      runs.set(event.runId, run)
    }
    if (agent === null && !candidate.isJoining) continue
    if (agent !== null) run.opening ??= { agentId: agent.id, receivedAt, importing }
    candidate.first = run.firsts.get(event.eventId) ?? candidate
    if (candidate.first !== candidate) continue
    run.firsts.set(event.eventId, candidate)
    run.events.push(event)
  }
  for (const { runId, numbered } of rejections) {
    if (numbered && !runs.has(runId)) runs.set(runId, { runId, opening: null, events: [], firsts: new Map() })
  }
  // Look up last: this also finds what the same batch stores.
  for (const candidate of candidates) {
    candidate.first ??= runs.get(candidate.event.runId)?.firsts.get(candidate.event.eventId) ?? null
  }
  return [...runs.values()].toSorted((a, b) => (a.runId < b.runId ? -1 : 1))
}

function refusedByStore({ event, verdict, receivedAt }: Candidate): RejectionRow[] {
  if (verdict !== 'absent' && verdict !== 'unstorable' && verdict !== 'erased') return []
  return [rejectionRow(event, verdict === 'absent' ? 'timestamp_too_old' : verdict, receivedAt)]
}
