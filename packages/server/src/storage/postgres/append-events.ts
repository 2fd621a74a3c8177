/**
 * The hot path: stores the events of parts of batches, and what they change, in one transaction and few round trips.
 *
 *   BEGIN, change the runs as if all events were new
 *      |--all runs are new--> copy the events, models, hours, refusals, names, COMMIT
 *      `--some are not--> look for stored events
 *            |--there are none--> copy the events, models, hours, refusals, names, COMMIT
 *            `--there are some--> ROLLBACK
 *   BEGIN, hold the runs -> insert the events -> compare with what is stored -> the same and the changes of runs, COMMIT
 *
 * Locks are taken in one order by everybody, so that overlapping retries on any number of nodes wait for each other but
 * never in a circle: runs, models, hours, refusals, agents' names; within each by key. Events need no order: who writes
 * to a run holds it. That is also why no smaller seq of a run is ever committed after a larger one.
 */
import type { PoolClient } from 'pg'
import { refusedByStore } from '../sql/rejections.ts'
import { countDifferingRetry, countForHour, countForRun, newTally, type Tally } from '../sql/issues/tally.ts'
import { myTurn } from '../../turns.ts'
import type { EventVerdict, NewEvent, RejectionRow } from '../events.ts'
import { hourRows, newestOfAgents, rejectionRows } from './change-rows.ts'
import { changeRuns, closeEmpty, wantRun, type HeldRun, type WantedRun } from './change-runs.ts'
import { inTransaction, UNDONE, type AtCommit } from './connections.ts'
import { copyRows } from './copy-rows.ts'
import { noteName, renameAgent, type AgentOf, type knownAgents } from './known-agents.ts'
import type { Buckets, knownModels } from './known-models.ts'
import { compare, EVENT_COLUMNS, eventRow, isAnyStored, write, type Row, type Table } from './row-writes.ts'

/** What of one batch goes into one transaction. */
export interface Part {
  receivedAt: number
  events: NewEvent[]
  rejections: RejectionRow[]
}

export interface Group {
  environmentId: string
  /** Rollup rows of this number are written by nobody else at the same time. */
  slot: number
  parts: Part[]
}

export interface KnownRows {
  agents: ReturnType<typeof knownAgents>
  models: ReturnType<typeof knownModels>
}

/** An event on its way in. */
interface Candidate {
  event: NewEvent
  receivedAt: number
  /** Which of the new seqs of its run, from 1; 0: it may not be inserted. */
  number: number
  verdict: EventVerdict
}

interface Work {
  client: PoolClient
  group: Group
  known: KnownRows
  agentOf: AgentOf
  /** By external id. */
  runs: Map<string, WantedRun>
  candidates: Candidate[]
}

/** What to take note of once it is committed. */
interface Written {
  buckets: Buckets
  /** Of agents; false where another node knows a newer name. */
  renamed: Promise<boolean>[]
}

/** Stores a group and answers for each part, in order; or throws, and nothing of it is stored. */
export async function appendGroup(client: PoolClient, group: Group, known: KnownRows): Promise<EventVerdict[][]> {
  const { environmentId, parts } = group
  const named = parts.flatMap(({ events }) => events.filter(({ onlyIfStored }) => !onlyIfStored))
  const agentOf = await known.agents.meet(client, environmentId, named)
  const work = { client, group, known, agentOf, ...number(group, agentOf) }
  try {
    const mayBeNew = work.candidates.every((candidate) => candidate.number > 0)
    const stored = mayBeNew ? await appendNew(work) : UNDONE
    const { buckets, renamed } = stored === UNDONE ? await appendKnown(work) : stored
    known.models.note(environmentId, buckets)
    if ((await Promise.all(renamed)).includes(false)) known.agents.forget(environmentId, named)
  } catch (error) {
    known.agents.forget(environmentId, named)
    throw error
  }
  const verdicts = work.candidates.map(({ verdict }) => verdict)
  return parts.map(({ events }) => verdicts.splice(0, events.length))
}

/** Gives the events of each run their numbers: all but repeats, and those that may only be looked up. */
function number({ parts }: Group, agentOf: AgentOf): Pick<Work, 'runs' | 'candidates'> {
  const runs = new Map<string, WantedRun>()
  const sent = new Set<string>()
  const candidates = parts.flatMap(({ receivedAt, events }) =>
    events.map((event): Candidate => {
      const { runId, eventId, onlyIfStored } = event
      let run = runs.get(runId)
      if (run === undefined || (run.seqs === 0 && !onlyIfStored)) {
        run = wantRun(runId, onlyIfStored ? null : agentOf(event).id, receivedAt)
        runs.set(runId, run)
      }
      if (onlyIfStored) return { event, receivedAt, number: 0, verdict: 'absent' }
      // NUL is in no id, so it can divide two.
      const id = `${runId}\0${eventId}`
      if (sent.has(id)) return { event, receivedAt, number: 0, verdict: 'unstorable' }
      sent.add(id)
      return { event, receivedAt, number: ++run.seqs, verdict: 'unstorable' }
    }),
  )
  return { runs, candidates }
}

/** Nothing is stored where some of the events are stored already. */
function appendNew(work: Work): Promise<Written | typeof UNDONE> {
  const { client, group, candidates } = work
  const { environmentId } = group
  const tally = newTally()
  for (const { event, number: seq } of candidates) countForRun(tally, event.runId, seq, event)
  return inTransaction(client, async (_, atCommit) => {
    const held = await holdRuns(work, tally)
    // Only of runs that were there before, and while they are held: what is not found now will not be stored by others.
    const mayBeStored = candidates.flatMap(({ event: { runId, eventId } }): [string, string][] => {
      const { id, isNew } = heldRun(held, runId)
      return isNew ? [] : [[id, eventId]]
    })
    if (mayBeStored.length > 0 && (await isAnyStored(client, environmentId, mayBeStored))) return UNDONE
    await myTurn()
    const rows = candidates.map((candidate) => rowOf(work, candidate, held, true))
    if (rows.length > 0) atCommit(copyRows(client, 'events', EVENT_COLUMNS, environmentId, rows))
    for (const candidate of candidates) candidate.verdict = 'stored'
    return writeRest(work, held, atCommit)
  })
}

/** Tells new events from stored ones by looking at what is stored. */
function appendKnown(work: Work): Promise<Written> {
  const { client, group, runs, candidates } = work
  const { environmentId } = group
  return inTransaction(client, async (_, atCommit) => {
    const tally = newTally()
    const held = await holdRuns(work, tally)
    const rows = candidates.map((candidate) => rowOf(work, candidate, held, false))
    await insertEvents(
      work,
      rows.filter((_row, index) => candidates[index]?.number !== 0),
    )
    for (const { index, isMine, isSame } of await compare(client, environmentId, rows)) {
      const candidate = candidates[index]
      if (candidate === undefined) continue
      candidate.verdict = isMine && candidate.number > 0 ? 'stored' : 'duplicate'
      if (candidate.verdict === 'duplicate' && !isSame) countDifferingRetry(tally, candidate.event.runId)
    }
    for (const { event, number: seq, verdict } of candidates) {
      if (verdict === 'stored') countForRun(tally, event.runId, seq, event)
    }
    const changed = [...runs.values()].filter(({ runId }) => tally.runs.has(runId))
    if (changed.length > 0) atCommit(changeRuns(client, environmentId, changed, tally))
    const empty = [...held].filter(([runId, { isNew }]) => isNew && !tally.runs.has(runId)).map(([, { id }]) => id)
    if (empty.length > 0) atCommit(closeEmpty(client, environmentId, empty))
    return writeRest(work, held, atCommit)
  })
}

async function holdRuns({ client, group, runs }: Work, tally: Tally): Promise<Map<string, HeldRun>> {
  return runs.size === 0 ? new Map() : changeRuns(client, group.environmentId, runs.values(), tally)
}

async function insertEvents({ client, group }: Work, rows: Row[]): Promise<void> {
  if (rows.length > 0) await write(client, 'events', group.environmentId, rows)
}

/** `isTaken`: whether the run's last seq counts the new events already. */
function rowOf({ runs }: Work, candidate: Candidate, held: Map<string, HeldRun>, isTaken: boolean): Row {
  const { event, receivedAt, number: place } = candidate
  const { id, lastSeq } = heldRun(held, event.runId)
  const before = isTaken ? lastSeq - (runs.get(event.runId)?.seqs ?? 0) : lastSeq
  return eventRow(id, before + place, receivedAt, event)
}

function heldRun(held: Map<string, HeldRun>, runId: string): HeldRun {
  const run = held.get(runId)
  if (run === undefined) throw new Error('Every run is held before it is written to')
  return run
}

/** Everything beside runs and events; it travels with the commit. */
async function writeRest(
  { client, group, known, agentOf, candidates }: Work,
  held: Map<string, HeldRun>,
  atCommit: AtCommit,
): Promise<Written> {
  const { environmentId, slot, parts } = group
  const send = (table: Table, rows: Row[]) => {
    if (rows.length > 0) atCommit(write(client, table, environmentId, rows))
  }
  const stored = candidates.filter(({ verdict }) => verdict === 'stored').map(({ event }) => event)
  const { hours } = tallyOfHours(stored, held)
  const models = new Set(Array.from(hours.values(), ({ model }) => model))
  const buckets = await known.models.bucketsOf(client, environmentId, models)
  send('models', buckets.isNew)
  send('hours', hourRows(hours, buckets, slot))
  const refused = candidates.flatMap(({ event, verdict, receivedAt }) => refusedByStore([event], [verdict], receivedAt))
  send('rejections', rejectionRows([...parts.flatMap(({ rejections }) => rejections), ...refused]))
  const renames = newestOfAgents(stored).flatMap((event) => noteName(agentOf(event), event) ?? [])
  renames.sort((a, b) => (a.id < b.id ? -1 : 1))
  const renamed = renames.map((rename) => renameAgent(client, environmentId, rename))
  renamed.forEach(atCommit)
  return { buckets, renamed }
}

function tallyOfHours(stored: readonly NewEvent[], held: Map<string, HeldRun>): Tally {
  const tally = newTally()
  for (const event of stored) countForHour(tally, heldRun(held, event.runId).agentId, event)
  return tally
}
