/**
 * The limit of recording: the rows that a server stores for a load, made without a server and written through a driver
 * alone.
 */
import { randomUUIDv7 } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { validateBatch } from '@tacho/server/domain/record/event.ts'
import type { NewEvent } from '@tacho/server/storage/record/events.ts'
import { countEvent, noCounts } from '@tacho/server/storage/sql/runs/usage-counts.ts'
import type { PlacedEvent } from '@tacho/server/storage/sql/record/stored-columns.ts'
import { textKey } from '@tacho/server/storage/sql/engine/keys.ts'
import { addEvent, newRun, type RunState } from '@tacho/server/storage/sql/record/run-state.ts'
import { bodyWriter } from '../load/bodies.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import { timeOf, type Plot } from '../load/shapes.ts'
import { timesOf } from '../stats.ts'

export const ENVIRONMENT = '01980000-0000-7000-8000-000000000001'

/** One connection that writes its own rows. */
export interface Lane {
  /** The rows of its next request. */
  nextRows(): PlacedEvent[]
  commit(rows: readonly PlacedEvent[]): Promise<void>
}

export interface AlonePace {
  seconds: number
  eventsPerCommit: number
  /** Commits per second on one connection. Default: as many as possible. */
  perSecond?: number
}

export interface RecordedAlone {
  /** Events per second. */
  rate: number
  /** Processor time per event, user and system, in microseconds. */
  cpuUs: number
  /** Duration of a commit on one connection, in milliseconds: median and 99th percentile. */
  p50: number
  p99: number
}

/** Rows are made outside the measured time: for one connection before each commit, for several in portions. */
const PORTION_EVENTS_PER_SECOND = 13_000

export async function recordAlone(
  lanes: readonly Lane[],
  { seconds, eventsPerCommit, perSecond }: AlonePace,
): Promise<RecordedAlone> {
  const portionEvents = (PORTION_EVENTS_PER_SECOND * seconds) / lanes.length
  const ahead = lanes.length === 1 ? 1 : Math.ceil(portionEvents / eventsPerCommit)
  const work = lanes.map((lane) => ({ lane, commits: commitsOf(lane, eventsPerCommit) }))
  const begun = performance.now()
  const took: number[] = []
  let [events, busyMs, cpuUs] = [0, 0, 0]
  while ((perSecond === undefined ? busyMs : performance.now() - begun) < seconds * 1000) {
    const portions = work.map(({ lane, commits }) => {
      return { lane, commits: Array.from({ length: ahead }, () => commits.next().value) }
    })
    if (perSecond !== undefined) await sleep(Math.max(0, begun + (took.length * 1000) / perSecond - performance.now()))
    const [from, cpuFrom] = [performance.now(), process.cpuUsage()]
    await Promise.all(
      portions.map(async ({ lane, commits }) => {
        for (const rows of commits) await lane.commit(rows)
      }),
    )
    const ms = performance.now() - from
    const { user, system } = process.cpuUsage(cpuFrom)
    cpuUs += user + system
    busyMs += ms
    took.push(ms)
    events += portions.flatMap(({ commits }) => commits).flat().length
  }
  const { p50, p99 } = timesOf(took)
  return { rate: (events * 1000) / busyMs, cpuUs: cpuUs / events, p50, p99 }
}

/** The rows of successive commits. Each has whole requests, at least one; `eventsPerCommit` is the mean. */
function* commitsOf({ nextRows }: Lane, eventsPerCommit: number): Generator<PlacedEvent[], never> {
  for (let [taken, due] = [0, eventsPerCommit]; ; due += eventsPerCommit) {
    const rows = nextRows()
    while (taken + rows.length + BATCH_EVENTS / 2 < due) rows.push(...nextRows())
    taken += rows.length
    yield rows
  }
}

/** Makes the rows of request `n` from the same text that a client sends. Runs are numbered from `firstNumber`. */
export function rowMaker(plot: Plot, firstNumber = 1): (n: number) => PlacedEvent[] {
  const bodyOf = bodyWriter(plot)
  let opened = 0
  const runs = new Map<string, RunState>()
  return (n) => {
    if (plot.shape !== 'mixed') runs.clear()
    const receivedAt = Date.now()
    const judged = validateBatch(Buffer.from(bodyOf(n)), { workspaceId: '', now: timeOf(plot, n, 0) })
    if (!judged.ok || judged.batch.rejections.length > 0) throw new Error('A load has valid events only')
    return judged.batch.events.map((event) => {
      let run = runs.get(event.runId)
      if (run === undefined) {
        run = newRun(randomUUIDv7(), firstNumber + opened++, event.runId, agentUuid(event), receivedAt)
        runs.set(event.runId, run)
      }
      return { run, event, receivedAt, envelope: agentNumber(event) }
    })
  }
}

/** The other changes that a commit of these events makes. */
export const newChanges = () => ({
  runs: new Set<RunState>(),
  counts: noCounts(),
  buckets: { models: new Map([['', '']]), tools: new Map([['', '']]) },
})

/** Counts a stored event. */
export function count(changes: ReturnType<typeof newChanges>, { run, event }: PlacedEvent, seq: number): void {
  const { runs, counts, buckets } = changes
  countEvent(counts, run, event)
  addEvent(run, seq, event)
  runs.add(run)
  const [model, tool] = [event.usage?.model ?? '', event.toolUse?.tool ?? '']
  if (!buckets.models.has(model)) buckets.models.set(model, textKey(model))
  if (!buckets.tools.has(tool)) buckets.tools.set(tool, textKey(tool))
}

/** The number at the end of an agent's id. All ids of a load have the same width, and each agent has one envelope. */
const agentNumber = ({ agentId }: NewEvent): number => Number.parseInt((agentId ?? '').slice(-2), 16)

const agentUuid = (event: NewEvent): string =>
  `01980000-0000-7000-8000-${agentNumber(event).toString(16).padStart(12, '0')}`
