/**
 * The steps that store the events of one environment in a transaction. They share one context, which each step reads and
 * fills in this order:
 *
 *   leaveOutErased -> openSources -> openRuns -> insertFirsts -> addRepeats -> refuseOthers
 *     -> newGaps -> changeRuns -> addCounts -> keepRefused -> changeAgents -> queueWork -> noteOnApprovals
 *
 * From changeRuns on they only write, in the order of locks that append.ts describes.
 */
import { addRepeated } from '../../record/completeness.ts'
import type { EventBatchRows, EventVerdict, NewEvent, RejectionRow, ImportedRun } from '../../record/events.ts'
import { renameAgent, type knownAgents, type KnownAgent } from '../runs/agents.ts'
import { ownText, type OpenRows } from './known-rows.ts'
import { StaleCaches, type knownStates } from './append-state.ts'
import { countEvent, noCounts, usedNames, writeCounts, type Counts } from '../runs/usage-counts.ts'
import type { knownEnvelopes, TakeNumbers } from './envelopes.ts'
import { isSameEvent, type PlacedEvent, type SoughtEvent } from './stored-columns.ts'
import { countRejected, keepRejections, rejectionRow } from './rejections.ts'
import { addEvent, isLateInRun, noteGaps, type Opening, type RunState } from './run-state.ts'
import {
  findJoining,
  noteDecision,
  noteFailedRun,
  queueFailedRuns,
  type failureBudgets,
  type FailedRuns,
} from './failed-runs.ts'
import { storeNames, type Buckets, type knownNames } from '../runs/known-names.ts'
import { noteApprovals, type NotedEvent } from '../approvals/approval-notes.ts'
import { addScores, type ScoredEvent } from '../runs/scores.ts'
import { markRuns } from '../runs/search-index.ts'
import { enqueueWork } from '../engine/work.ts'
import type { Sql } from '../engine/sql.ts'

export interface WantedRun {
  runId: string
  /** Null: only look the run up. */
  opening: Opening | null
  /** Distinct events, in order of arrival. */
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
  /** Results by external id; `wanted` is sorted by it. Runs neither found nor opened are missing. */
  openRuns(environmentId: string, wanted: readonly WantedRun[]): Promise<ReadonlyMap<string, RunState>>
  /**
   * Event ids are distinct. Returns the seq of each; null: it was already stored. The first stored event that names a
   * session sets it for the run, so that the rows of later events can leave it out.
   */
  insertEvents(environmentId: string, events: readonly PlacedEvent[]): Promise<(number | null)[]>
  /** Whether each event equals the stored one; null: none is stored. */
  compareEvents(environmentId: string, events: readonly SoughtEvent[]): Promise<(boolean | null)[]>
  changeRuns(environmentId: string, runs: readonly RunState[]): Promise<unknown>
}

/** Wait before gaps are reported. Retries and spools of dead processes fill most gaps within this time. */
const GAPS_SETTLE_MS = 60_000

export interface Candidate {
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

export interface Remembered {
  environmentId: string
  /** Counts removals from the environment. The other fields are cached only if it has not changed. */
  revision: number
  agents: OpenRows<KnownAgent>
  envelopes: OpenRows<number>
  buckets: Buckets
  /** False if another node knows a newer name. */
  renamed: Promise<boolean>[]
}

/** Caches that outlive the transaction of an append. */
export interface AppendCaches {
  agents: ReturnType<typeof knownAgents>
  envelopes: ReturnType<typeof knownEnvelopes>
  names: ReturnType<typeof knownNames>
  states: ReturnType<typeof knownStates>
  budgets: ReturnType<typeof failureBudgets>
  decisionBudgets: ReturnType<typeof failureBudgets>
}

interface Append {
  caches: AppendCaches
  transaction: AppendTransaction
  environmentId: string
  candidates: readonly Candidate[]
  rejections: readonly RejectionRow[]
  /** Arrival of the first event. */
  at: number
  runs: ReadonlyMap<string, RunState>
  changed: Set<RunState>
  counts: Counts
  renames: Map<KnownAgent, NewEvent>
  failed: FailedRuns
  decided: FailedRuns
  scored: ScoredEvent[]
  noted: NotedEvent[]
}

type Confirm = Awaited<ReturnType<AppendCaches['states']['check']>>['confirm']

export async function storeIn(
  caches: AppendCaches,
  transaction: AppendTransaction,
  environmentId: string,
  candidates: readonly Candidate[],
  rejections: readonly RejectionRow[],
): Promise<Remembered> {
  const append: Append = {
    caches,
    transaction,
    environmentId,
    candidates,
    rejections,
    at: candidates[0]?.receivedAt ?? rejections[0]?.rejectedAt ?? 0,
    runs: new Map(),
    changed: new Set(),
    counts: noCounts(),
    renames: new Map(),
    failed: new Map(),
    decided: new Map(),
    scored: [],
    noted: [],
  }
  const confirm = await leaveOutErased(append)
  const sources = await openSources(append)
  const { revision, isSearched } = await openRuns(append, confirm)
  await insertFirsts(append)
  await addRepeats(append)
  const refused = await refuseOthers(append)
  const gaps = newGaps(append)
  changeRuns(append, isSearched === 1)
  const buckets = await addCounts(append)
  keepRefused(append, refused)
  const renamed = changeAgents(append)
  queueWork(append, gaps)
  await noteOnApprovals(append)
  return { environmentId, revision, ...sources, buckets, renamed }
}

async function leaveOutErased({ caches, transaction, environmentId, candidates }: Append): Promise<Confirm> {
  const forget = () => {
    caches.agents.forget()
    caches.envelopes.forget()
    transaction.forgetRuns()
  }
  const { erasedStates, confirm } = await caches.states.check(
    transaction.sql,
    environmentId,
    candidates.map(eventOf),
    forget,
  )
  for (const [index, state] of erasedStates.entries()) {
    const candidate = candidates[index]!
    if (state === 'erased') candidate.verdict = 'erased'
    // The recorder continues its numbers after the erased events, which must not count as missing.
    if (state === 'later') Object.assign(candidate.event, { number: null, drops: null })
  }
  return confirm
}

/** Opens the agents and the envelopes of the events. A score that joins another event's run opens no agent. */
async function openSources({ caches, transaction: { sql, takeNumbers }, environmentId, candidates, at }: Append) {
  const named = candidates.filter(({ event, verdict }) => !event.onlyIfStored && verdict !== 'erased')
  const events = named.map(eventOf)
  const joining = await findJoining(sql, environmentId, events)
  for (const candidate of named) candidate.isJoining = joining.has(candidate.event)
  const acting = named.filter(({ isJoining }) => !isJoining)
  const agents = await caches.agents.open(sql, environmentId, acting.map(eventOf), at)
  acting.forEach((candidate, index) => (candidate.agent = agents.ofEvent[index] ?? null))
  const envelopes = await caches.envelopes.open(sql, environmentId, events, takeNumbers)
  named.forEach((candidate, index) => (candidate.envelope = envelopes.ofEvent[index] ?? 0))
  return { agents, envelopes }
}

async function openRuns(append: Append, confirm: Confirm) {
  const { transaction, environmentId } = append
  const wanted = wantedRuns(append)
  const [runs, state] = await Promise.all([
    wanted.length > 0 ? transaction.openRuns(environmentId, wanted) : append.runs,
    confirm(),
  ])
  append.runs = runs
  return state
}

/** Among equal event ids, the first event is stored. */
async function insertFirsts(append: Append): Promise<void> {
  const { transaction, environmentId, candidates, runs } = append
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
  if (placed.length === 0) return
  const seqs = await transaction.insertEvents(environmentId, placed)
  placed.forEach(({ run }, index) => {
    const [seq = null, candidate] = [seqs[index], firsts[index]]
    if (seq !== null && candidate !== undefined) noteStored(append, candidate, run, seq)
  })
}

function noteStored(append: Append, candidate: Candidate, run: RunState, seq: number): void {
  const { caches, counts, failed, decided, changed, scored, noted, renames } = append
  const { event, agent, importing, keyFamily } = candidate
  candidate.verdict = 'stored'
  countEvent(counts, run, event)
  if (seq > run.openedEvents) addEvent(run, seq, event)
  // An import brings the issues of its runs itself.
  if (importing === null) {
    noteFailedRun(failed, run, seq, event)
    noteDecision(decided, run, event)
  }
  changed.add(run)
  if (event.score !== null) scored.push({ run: run.id, event })
  if (event.approval !== null && keyFamily !== null) noted.push({ event, note: event.approval, keyFamily })
  if (agent !== null && caches.agents.note(agent, event)) renames.set(agent, event)
}

function noteRecounted({ changed }: Append, run: RunState): void {
  run.isRecounted = true
  changed.add(run)
}

async function addRepeats(append: Append): Promise<void> {
  for (const { candidate, run, isSame } of await compareRepeats(append)) {
    candidate.verdict = isSame || candidate.importing === null ? 'duplicate' : 'differing'
    if (addRepeated(run.recorders, candidate.event, ownText)) noteRecounted(append, run)
    if (isSame || candidate.importing !== null) continue
    run.differingRetries++
    noteRecounted(append, run)
  }
}

/** Gives each candidate that is left a verdict, and counts the refused events. */
async function refuseOthers(append: Append) {
  const { transaction, environmentId, candidates, rejections, runs } = append
  for (const candidate of candidates) candidate.verdict ??= candidate.event.onlyIfStored ? 'absent' : 'unstorable'
  const refused = [...rejections, ...candidates.flatMap(refusedByStore)]
  for (const run of await countRejected(transaction.sql, environmentId, refused, runs)) noteRecounted(append, run)
  return refused
}

/** Call this before the runs are written, because that resets `hasNewGaps`. */
function newGaps({ environmentId, changed, at }: Append) {
  for (const run of changed) noteGaps(run)
  return [...changed].flatMap(({ id, hasNewGaps }) => {
    return hasNewGaps ? { kind: 'tell_gaps' as const, environmentId, subjectId: id, dueAt: at + GAPS_SETTLE_MS } : []
  })
}

function changeRuns({ transaction, environmentId, changed, at }: Append, isSearched: boolean): void {
  if (changed.size === 0) return
  const byRunId = [...changed].toSorted((a, b) => (a.runId < b.runId ? -1 : 1))
  transaction.atCommit(transaction.changeRuns(environmentId, byRunId))
  if (isSearched) transaction.atCommit(markRuns(transaction.sql, environmentId, changed, at))
}

async function addCounts({ caches, transaction, environmentId, counts, scored }: Append): Promise<Buckets> {
  const { sql, slot, atCommit } = transaction
  if (scored.length > 0) await addScores(sql, environmentId, scored)
  const buckets = await caches.names.bucketsOf(sql, environmentId, usedNames(counts))
  storeNames(sql, environmentId, buckets).forEach(atCommit)
  writeCounts(sql, environmentId, counts, buckets, slot).forEach(atCommit)
  return buckets
}

function keepRefused({ transaction, environmentId }: Append, refused: readonly RejectionRow[]): void {
  if (refused.length > 0) transaction.atCommit(keepRejections(transaction.sql, environmentId, refused))
}

function changeAgents({ transaction: { sql, atCommit }, environmentId, renames }: Append): Promise<boolean>[] {
  const renamed = [...renames]
    .toSorted(([a], [b]) => (a.id < b.id ? -1 : 1))
    .map(([{ id }, { agentName, time }]) => renameAgent(sql, environmentId, id, agentName, time))
  renamed.forEach(atCommit)
  return renamed
}

function queueWork(
  { caches, transaction: { sql, atCommit }, environmentId, failed, decided, at }: Append,
  gaps: ReturnType<typeof newGaps>,
): void {
  if (gaps.length > 0) atCommit(enqueueWork(sql, gaps))
  if (failed.size === 0 && decided.size === 0) return
  const queued = {
    failed: caches.budgets.within(environmentId, failed, at),
    decided: caches.decisionBudgets.within(environmentId, decided, at),
  }
  atCommit(queueFailedRuns(sql, environmentId, queued, at))
}

/** Last, because it locks the revision of approvals. */
async function noteOnApprovals({ transaction, environmentId, noted, at }: Append): Promise<void> {
  if (noted.length > 0) await noteApprovals(transaction.sql, environmentId, noted, at)
}

interface Repeat {
  candidate: Candidate
  run: RunState
  isSame: boolean
}

async function compareRepeats({ transaction, environmentId, candidates, runs }: Append): Promise<Repeat[]> {
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

export function candidatesOf({ receivedAt, events, importing, keyFamily }: EventBatchRows): Candidate[] {
  const batch = { receivedAt, importing: importing ?? null, keyFamily: keyFamily ?? null }
  const none = { agent: null, envelope: 0, isJoining: false, first: null, verdict: null }
  return events.map((event) => ({ event, ...batch, ...none }))
}

/** Sorted by run id, so that all transactions lock runs in one order. Marks the first candidate of each event id. */
function wantedRuns({ candidates, rejections }: Append): WantedRun[] {
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
