/**
 * Removes what is older than an environment's settings, in slices so short that recording does not wait for them.
 *
 *   queued --claimed--> runs -> payloads -> issues, approvals, audit entries --> ended --an hour later--> queued
 *
 * Looking for old runs only reads. Each slice checks again what it removes, by the settings of that moment, and commits
 * it with its counts. So a pass needs no memory: after a crash, the next one looks from the start again.
 */
import type { RetainedRuns, RetentionStore } from '../storage/retention.ts'
import { RETAINED_ROWS } from '../storage/retention.ts'
import type { RunPlace } from '../storage/runs.ts'
import type { Storage } from '../storage/storage.ts'
import type { WorkItem, WorkStore } from '../storage/work.ts'
import { every, type Job } from './every.ts'
import { createPace, type Pace } from './retention-pace.ts'
import type { WorkHandler } from './work.ts'

export interface RetainOptions {
  storage: RetentionStore & Pick<WorkStore, 'finishWork' | 'postponeWork'> & Pick<Storage, 'gauges' | 'engine'>
  owner: string
  now: () => number
  /** Other environments get their turn after this time. */
  turnMs?: number
}

/** A pass over an environment that nobody changes takes a few statements, so it may come often. */
const PASS_EVERY_MS = 3_600_000
const TURN_MS = 60_000
/** Runs of one slice. */
const RUNS_AT_ONCE = 50

export interface QueueOptions {
  storage: Pick<RetentionStore, 'queueRetention'>
  now: () => number
  wake: () => void
  onError: (error: unknown) => void
  intervalMs?: number
}

/** Queues the passes that are due. */
export function queueRetention({ storage, now, wake, onError, intervalMs = 60_000 }: QueueOptions): Job {
  return every({
    intervalMs,
    onError,
    async run() {
      await storage.queueRetention(now(), now() - PASS_EVERY_MS)
      wake()
    },
  })
}

export function retain(options: RetainOptions): WorkHandler {
  const { storage, owner, now, turnMs = TURN_MS } = options
  const kind = 'retain'
  const finish = ({ subjectId }: WorkItem) => storage.finishWork({ kind, owner, subjectIds: [subjectId] })
  return {
    kind,
    // One environment at a time per node.
    batch: 1,
    async perform(items, signal) {
      for (const item of items) {
        const { environmentId, subjectId } = item
        const turn: Turn = { environmentId, endsAt: now() + turnMs, signal, pace: createPace(storage, signal) }
        if (await pass(options, turn)) {
          await finish(item)
          continue
        }
        const rest = { dueAt: now(), error: null, counts: false }
        await storage.postponeWork({ kind, owner, subjectIds: [subjectId] }, rest)
      }
    },
    // The next pass is queued when it is due.
    giveUp: finish,
  }
}

interface Turn {
  environmentId: string
  endsAt: number
  signal: AbortSignal
  pace: Pace
}

/** Returns whether the pass is at its end. */
async function pass(options: RetainOptions, turn: Turn): Promise<boolean> {
  const { storage, now } = options
  const { environmentId } = turn
  if ((await storage.startRetention(environmentId, now())) === null) return true
  for (const what of ['runs', 'payloads'] as const) if (!(await removeRuns(options, turn, what))) return false
  for (const what of RETAINED_ROWS) {
    for (;;) {
      if (isOver(options, turn)) return false
      const removed = await turn.pace.slice((most) => storage.removeExpiredRows(environmentId, what, now(), most))
      if (removed === 0) break
    }
  }
  await storage.endRetention(environmentId, now())
  return true
}

async function removeRuns(options: RetainOptions, turn: Turn, what: RetainedRuns): Promise<boolean> {
  const { storage, now } = options
  const { environmentId, pace } = turn
  let after: RunPlace | null = null
  do {
    if (isOver(options, turn)) return false
    const found = await storage.listExpiredRuns(environmentId, what, now(), after)
    let left = found.runs
    while (left.length > 0) {
      if (isOver(options, turn)) return false
      const runs = left.slice(0, RUNS_AT_ONCE)
      const ids = runs.map(({ id }) => id)
      const reachedAt = runs[0]?.startedAt ?? 0
      const act = (most: number) => storage.removeExpiredRuns(environmentId, what, now(), { ids, most, reachedAt })
      const rest = new Set<string>()
      await pace.slice(async (most) => {
        const removed = await act(most)
        removed.rest.forEach((id) => rest.add(id))
        return removed.events
      })
      left = [...runs.filter(({ id }) => rest.has(id)), ...left.slice(runs.length)]
    }
    after = found.after
  } while (after !== null)
  return true
}

function isOver({ now }: RetainOptions, { endsAt, signal }: Turn): boolean {
  return signal.aborted || now() > endsAt
}
