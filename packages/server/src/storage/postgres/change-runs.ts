/**
 * Runs in a transaction: one upsert, in the order of their external ids, opens those that are new, locks all of them, and
 * adds what is given, nothing included. What a run has been is not read, so that a batch costs one write per run.
 */
import { randomUUIDv7 } from 'node:crypto'
import type { ClientBase } from 'pg'
import { textKey } from '../sql/keys.ts'
import type { RunChange, Tally } from '../sql/issues/tally.ts'
import { write, type Row } from './row-writes.ts'
import { statement } from './statement.ts'

/** A run as it would be opened, and how many seqs its events take. */
export interface WantedRun {
  runId: string
  id: string
  agentId: string
  receivedAt: number
  seqs: number
}

export interface HeldRun {
  id: string
  agentId: string
  /** The largest seq that its events have now. */
  lastSeq: number
  isNew: boolean
}

/** No agent: of a run that is looked for, and taken away again where it is not found. */
const NOBODY = '00000000-0000-0000-0000-000000000000'
const LATEST = Number.MAX_SAFE_INTEGER

const CLOSE_EMPTY = statement('DELETE FROM runs WHERE environment_id = $1 AND id = ANY($2::uuid[]) AND event_count = 0')

export function wantRun(runId: string, agentId: string | null, receivedAt: number): WantedRun {
  return { runId, id: randomUUIDv7(), agentId: agentId ?? NOBODY, receivedAt, seqs: 0 }
}

/** Adds to the runs what was counted of them, under their external ids; those of which nothing was are only held. */
export async function changeRuns(
  client: ClientBase,
  environmentId: string,
  wanted: Iterable<WantedRun>,
  { runs: changes }: Pick<Tally, 'runs'>,
): Promise<Map<string, HeldRun>> {
  const sorted = [...wanted].toSorted((a, b) => (a.runId < b.runId ? -1 : 1))
  const rows = sorted.map((run) => changeRow(run, changes.get(run.runId)))
  const written = await write(client, 'runs', environmentId, rows)
  const found = new Map(written.rows.map((row) => [row['runId'], row as unknown as Omit<HeldRun, 'isNew'>]))
  return new Map(
    sorted.map(({ runId, id }) => {
      const run = found.get(runId)
      if (run === undefined) throw new Error('An upsert returns every row')
      return [runId, { ...run, isNew: run.id === id }]
    }),
  )
}

/** Takes runs away that were opened in this transaction and have no events. */
export async function closeEmpty(client: ClientBase, environmentId: string, ids: string[]): Promise<void> {
  await client.query({ ...CLOSE_EMPTY, values: [environmentId, ids] })
}

/** In the order of RUN_COLUMNS, as texts. */
function changeRow(run: WantedRun, change: RunChange | undefined): Row {
  const values = change ? changeOf(change, run.seqs) : NO_CHANGE
  return [run.runId, run.id, run.agentId, run.receivedAt, ...values].map((value) =>
    value === null ? null : String(value),
  )
}

const NO_CHANGE: Row = [LATEST, -LATEST, 0, 0, 0, 0, 0, 0, 0, 'RUNNING', null, null, null, null]

function changeOf(change: RunChange, seqs: number): Row {
  const { firstTime, lastTime, events, differingRetries, outcome, sessionId } = change
  const times = [Math.min(firstTime, LATEST), Math.max(lastTime, -LATEST)]
  const sums = [change.promptTokens, change.completionTokens, change.totalTokens, change.costNanos]
  const closing = [outcome?.status ?? 'RUNNING', outcome?.time ?? null, outcome?.seq ?? null]
  const session = sessionId === null ? [null, null] : [textKey(sessionId), sessionId]
  return [...times, events, differingRetries, seqs, ...sums, ...closing, ...session]
}
