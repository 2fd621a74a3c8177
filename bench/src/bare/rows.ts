/** What the server stores of a load, made without a server: the rows that a bare driver writes beside it. */
import { judgeBatch } from '@tacho/server/domain/event.ts'
import type { NewEvent } from '@tacho/server/storage/events.ts'
import { countEvent, noCounts, type Counts } from '@tacho/server/storage/sql/usage/counts.ts'
import type { PlacedEvent } from '@tacho/server/storage/sql/append/event-columns.ts'
import { textKey } from '@tacho/server/storage/sql/keys.ts'
import { addEvent, newRun, type RunState } from '@tacho/server/storage/sql/append/run-state.ts'
import { randomUUIDv7 } from 'node:crypto'
import { bodyWriter } from '../load/bodies.ts'
import { timeOf, type Plot } from '../load/shapes.ts'

export const ENVIRONMENT = '01980000-0000-7000-8000-000000000001'

/** How quickly events are recorded, and what each costs the process that records it. */
export interface Recorded {
  eventsPerSecond: number
  /** Processor time, user and system, in microseconds. */
  cpuUsPerEvent: number
}

/** Makes the rows of request `n`, of the very text that a client sends. Runs are numbered from `firstNumber`. */
export function rowMaker(plot: Plot, firstNumber = 1): (n: number) => PlacedEvent[] {
  const bodyOf = bodyWriter(plot)
  let opened = 0
  const runs = new Map<string, RunState>()
  return (n) => {
    if (plot.shape !== 'mixed') runs.clear()
    const receivedAt = Date.now()
    const judged = judgeBatch(bodyOf(n).toString('latin1'), { workspaceId: '', now: timeOf(plot, n, 0) })
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

/** What a commit of these events changes beside them. */
export interface CommitChanges {
  runs: Set<RunState>
  counts: Counts
  buckets: Record<'models' | 'tools', Map<string, string>>
}

export const newChanges = (): CommitChanges => ({
  runs: new Set(),
  counts: noCounts(),
  buckets: { models: new Map([['', '']]), tools: new Map([['', '']]) },
})

/** Counts a stored event. */
export function count({ runs, counts, buckets }: CommitChanges, { run, event }: PlacedEvent, seq: number): void {
  countEvent(counts, run, event)
  addEvent(run, seq, event)
  runs.add(run)
  const [model, tool] = [event.usage?.model ?? '', event.toolUse?.tool ?? '']
  if (!buckets.models.has(model)) buckets.models.set(model, textKey(model))
  if (!buckets.tools.has(tool)) buckets.tools.set(tool, textKey(tool))
}

/** Agents of a load have ids of one width, which end in their number. Each has one envelope. */
const agentNumber = ({ agentId }: NewEvent): number => Number.parseInt((agentId ?? '').slice(-2), 16)

const agentUuid = (event: NewEvent): string =>
  `01980000-0000-7000-8000-${agentNumber(event).toString(16).padStart(12, '0')}`
