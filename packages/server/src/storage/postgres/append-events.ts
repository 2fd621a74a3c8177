/**
 * The hot path: stores the events of parts of batches, and what they change, in one transaction and three round trips:
 *
 *   BEGIN, lock the runs -> insert the events -> write runs, models, hours, refusals and names, COMMIT
 *
 * Locks are taken in one order by everybody, so that overlapping retries on any number of nodes wait for each other but
 * never in a circle: runs that are there, then new runs, models, hours, refusals, agents; within each by key. Events need
 * no order: who writes to a run holds it, or has just made it up.
 */
import type { PoolClient } from 'pg'
import { countDifferingRetry, countStored, newTally, type Tally } from '../sql/tally.ts'
import type { EventVerdict, NewEvent, RejectionRow } from '../storage.ts'
import { hourRows, newestOfAgents, rejectionRows } from './change-rows.ts'
import { inTransaction } from './connections.ts'
import { noteName, type AgentOf, type knownAgents, type Rename } from './known-agents.ts'
import type { Buckets, knownModels } from './known-models.ts'
import { changedRuns, lockRuns, openRun, type LockedRun } from './locked-runs.ts'
import { compare, eventRow, write, type Compared, type Row } from './row-writes.ts'

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
  /** Null: there is none, and the event may not open one. */
  run: LockedRun | null
  row: Row
  /** The first of its id, and may be inserted. */
  isNew: boolean
  verdict: EventVerdict
}

const SEQ = 2

/** Stores a group and answers for each part, in order; or throws, and nothing of it is stored. */
export async function appendGroup(client: PoolClient, group: Group, known: KnownRows): Promise<EventVerdict[][]> {
  const { environmentId, parts } = group
  const inserted = parts.flatMap(({ events }) => events.filter(({ onlyIfStored }) => !onlyIfStored))
  const agentOf = await known.agents.meet(client, environmentId, inserted)
  let renames: Rename[] = []
  let renamed: Promise<number> | undefined
  let buckets: Buckets | undefined
  try {
    const verdicts = await inTransaction(client, 'write', async (_, atCommit) => {
      const send = (table: Parameters<typeof write>[1], rows: Row[]) => {
        const written = rows.length === 0 ? Promise.resolve(0) : write(client, table, environmentId, rows)
        atCommit.push(written)
        return written
      }
      const tally = newTally()
      const { runs, candidates } = await storeEvents(client, group, agentOf, tally)
      buckets = await known.models.bucketsOf(client, environmentId, modelsOf(tally))
      const changed = changedRuns(runs, tally)
      send('newRuns', changed.newRuns)
      send('runs', changed.runs)
      send('models', buckets.isNew)
      send('hours', hourRows(tally, buckets, group.slot))
      send('rejections', rejectionRows(parts.flatMap(({ rejections }) => rejections)))
      renames = renamesOf(agentOf, candidates)
      renamed = send(
        'agents',
        renames.map(({ id, name, time }) => [id, name, time]),
      )
      return candidates.map(({ verdict }) => verdict)
    })
    if (buckets) known.models.note(environmentId, buckets)
    // Another node knows a newer name.
    if ((await renamed) !== renames.length) known.agents.forget(environmentId, inserted)
    return parts.map(({ events }) => verdicts.splice(0, events.length))
  } catch (error) {
    known.agents.forget(environmentId, inserted)
    throw error
  }
}

/** Inserts what is new, gives every event its verdict, and counts what they change. */
async function storeEvents(client: PoolClient, group: Group, agentOf: AgentOf, tally: Tally) {
  const { environmentId } = group
  const runIds = new Set(group.parts.flatMap(({ events }) => events.map(({ runId }) => runId)))
  const runs = runIds.size > 0 ? await lockRuns(client, environmentId, runIds) : new Map<string, LockedRun>()
  const candidates = candidatesOf(group, agentOf, runs)
  const rows = candidates.filter(({ isNew }) => isNew).map(({ row }) => row)
  const stored = rows.length > 0 ? await write(client, 'events', environmentId, rows) : 0
  const isAllNew = stored === rows.length
  const unsure = candidates.filter(({ run, isNew }) => run !== null && !(isNew && isAllNew))
  const found = unsure.length > 0 ? await findStored(client, environmentId, unsure) : new Map<Candidate, Compared>()
  for (const candidate of candidates) {
    const { event, run, row, isNew } = candidate
    if (run === null) continue
    const compared = found.get(candidate)
    if (isNew && (isAllNew || compared?.isMine)) {
      candidate.verdict = 'stored'
      countStored(tally, { run: run.id, agentId: run.agentId, seq: Number(row[SEQ]), event })
    } else if (compared) {
      candidate.verdict = 'duplicate'
      if (!compared.isSame) countDifferingRetry(tally, run.id)
    }
  }
  return { runs, candidates }
}

/** Every event with its run, opened where it is new; `runs` gets those. */
function candidatesOf({ parts }: Group, agentOf: AgentOf, runs: Map<string, LockedRun>): Candidate[] {
  const sent = new Set<string>()
  return parts.flatMap(({ receivedAt, events }) =>
    events.map((event): Candidate => {
      const { runId, eventId, onlyIfStored } = event
      let run = runs.get(runId) ?? null
      if (run === null && !onlyIfStored) {
        run = openRun(runId, agentOf(event).id, receivedAt)
        runs.set(runId, run)
      }
      const key = `${run?.id} ${eventId}`
      const isNew = run !== null && !onlyIfStored && !sent.has(key)
      if (isNew) sent.add(key)
      const seq = run === null ? 0 : isNew ? ++run.lastSeq : run.lastSeq
      const row = run === null ? [] : eventRow(run.id, seq, receivedAt, event)
      return { event, run, row, isNew, verdict: onlyIfStored ? 'absent' : 'unstorable' }
    }),
  )
}

async function findStored(client: PoolClient, environmentId: string, unsure: Candidate[]) {
  const compared = await compare(
    client,
    environmentId,
    unsure.map(({ row }) => row),
  )
  return new Map(
    compared.flatMap((found) => {
      const candidate = unsure[found.index]
      return candidate ? [[candidate, found] as const] : []
    }),
  )
}

function renamesOf(agentOf: AgentOf, candidates: Candidate[]): Rename[] {
  const stored = candidates.filter(({ verdict }) => verdict === 'stored').map(({ event }) => event)
  return newestOfAgents(stored)
    .flatMap((event) => noteName(agentOf(event), event) ?? [])
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

function modelsOf({ hours }: Tally): Set<string> {
  return new Set([...hours.values()].map(({ model }) => model))
}
