/**
 * Removes what is older than an environment's settings, in slices so short that recording does not wait for them. Rows
 * are deleted in storage/sql/data/retention-removal.ts, those of runs also in removal.ts.
 *
 *   queued --claimed--> runs -> payloads -> issues, approvals, audit entries --> ended --an hour later--> queued
 *
 * Finding old runs only reads. Each slice checks its runs again by the current settings, and commits the removal
 * with its counts. Runs become invisible first, and their events are deleted afterwards. So a pass needs no memory:
 * after a crash, the next one deletes the events that are left and looks from the start again.
 */
import {
  RETAINED_ROWS,
  type ExpiredRun,
  type RetainedRows,
  type RetainedRuns,
  type RetentionSlice,
} from '../../storage/data/retention.ts'
import type { RunPlace } from '../../storage/runs/runs.ts'
import type { Storage } from '../../storage/storage.ts'
import { every, type Job, type JobOptions } from '../engine/timers.ts'
import { createPace, type Pace } from '../engine/pace.ts'
import type { HandlerOptions, ItemHandler } from '../engine/work.ts'

/** A pass that finds nothing takes only a few statements. */
const PASS_EVERY_MS = 3_600_000
const TURN_MS = 60_000
const RUNS_AT_ONCE = 500

type QueueOptions = JobOptions<'queueRetention'> & { wake: () => void }

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

/** Rows that a pass has removed so far. Events are removed with their run; other removals take only payloads. */
export type RemovedRows = Record<'runs' | 'events' | 'payloads' | RetainedRows, number>

interface RetainOptions extends HandlerOptions<keyof Storage> {
  /** Called after each turn of a pass that removed something. `bytes`: free space; null: unknown to the store. */
  onRemoved?: (environmentId: string, rows: RemovedRows, bytes: number | null) => void
}

const nothingRemoved = (): RemovedRows => {
  const rows = RETAINED_ROWS.map((what) => [what, 0])
  return { runs: 0, events: 0, payloads: 0, ...Object.fromEntries(rows) } as RemovedRows
}

export function retain({ storage, now, onRemoved }: RetainOptions): ItemHandler {
  return {
    kind: 'retain',
    batch: 1,
    async perform({ environmentId }, _, signal) {
      const endsAt = now() + TURN_MS
      const pace = createPace(storage, signal)
      const removed = nothingRemoved()
      const freeBefore = storage.gauges().freeBytes
      try {
        for await (const change of slicesOf(storage, environmentId, now, removed)) {
          if (signal.aborted || now() > endsAt) return { dueAt: now() }
          await pace.slice(change)
        }
        return 'done'
      } finally {
        const { freeBytes } = storage.gauges()
        const bytes = freeBefore === null || freeBytes === null ? null : Math.max(0, freeBytes - freeBefore)
        if (Object.values(removed).some((rows) => rows > 0)) onRemoved?.(environmentId, removed, bytes)
      }
    },
    // Nothing to do: the next pass is queued when it is due.
    giveUp: async () => 'done',
  }
}

type Slice = Parameters<Pace['slice']>[0]

/** Each slice must be finished before the next one is requested. */
async function* slicesOf(
  storage: Storage,
  environmentId: string,
  now: () => number,
  counts: RemovedRows,
): AsyncGenerator<Slice> {
  // Runs that an earlier pass removed. Their events are deleted whatever the settings are now.
  yield* deletedEvents()
  if ((await storage.startRetention(environmentId, now())) === null) return
  for await (const runs of expired('runs')) {
    for (let leftRuns = runs; leftRuns.length > 0;) {
      let runsLeft = false
      yield async (most) => {
        const slice = sliceOf(leftRuns, most)
        leftRuns = leftRuns.slice(slice.ids.length)
        const removed = await storage.removeExpiredRuns(environmentId, now(), slice)
        runsLeft = removed.runsLeft
        counts.runs += removed.changedRunIds.length
        counts.events += removed.events
        return removed.events
      }
      if (runsLeft) yield* deletedEvents()
    }
  }
  for await (const runs of expired('payloads')) {
    for (let leftRuns = runs; leftRuns.length > 0;) {
      yield async (most) => {
        const slice = sliceOf(leftRuns, most)
        const removed = await storage.removeExpiredPayloads(environmentId, now(), slice)
        const left = new Set(removed.rest)
        counts.payloads += removed.events
        leftRuns = leftRuns.filter(({ id }, index) => index >= slice.ids.length || left.has(id))
        return removed.events
      }
    }
  }
  for (const what of RETAINED_ROWS) {
    for (let removed = -1; removed !== 0;) {
      yield async (most) => {
        removed = await storage.removeExpiredRows(environmentId, what, now(), most)
        counts[what] += removed
        return removed
      }
    }
  }
  await storage.endRetention(environmentId, now())

  async function* deletedEvents(): AsyncGenerator<Slice> {
    for (let runsLeft = true; runsLeft;) {
      yield async (most) => {
        const deleted = await storage.deleteExpiredEvents(environmentId, now(), most)
        runsLeft = deleted.runsLeft
        counts.events += deleted.events
        return deleted.events
      }
    }
  }

  async function* expired(what: RetainedRuns): AsyncGenerator<ExpiredRun[]> {
    let after: RunPlace | null = null
    do {
      const expiredRuns = await storage.listExpiredRuns(environmentId, what, now(), after)
      yield expiredRuns.runs
      after = expiredRuns.after
    } while (after !== null)
  }
}

function sliceOf(runs: readonly ExpiredRun[], most: number): RetentionSlice {
  let events = runs[0]?.events ?? 0
  let count = 1
  while (count < Math.min(runs.length, RUNS_AT_ONCE)) {
    events += runs[count]?.events ?? 0
    if (events > most) break
    count++
  }
  return { ids: runs.slice(0, count).map(({ id }) => id), most, reachedAt: runs[0]?.startedAt ?? 0 }
}
