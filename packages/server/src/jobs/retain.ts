/**
 * Removes what is older than an environment's settings, in slices so short that recording does not wait for them.
 *
 *   queued --claimed--> runs -> payloads -> issues, approvals, audit entries --> ended --an hour later--> queued
 *
 * Finding old runs only reads. Each slice checks its runs again by the current settings, and commits the removal
 * with its counts. Runs become invisible first, and their events are deleted afterwards. So a pass needs no memory:
 * after a crash, the next one deletes the events that are left and looks from the start again.
 */
import type { ExpiredRun, RetainedRuns, RetentionSlice } from '../storage/retention.ts'
import { RETAINED_ROWS } from '../storage/retention.ts'
import type { RunPlace } from '../storage/runs.ts'
import type { Storage } from '../storage/storage.ts'
import { every, type Job } from './every.ts'
import { oneByOne } from './one-by-one.ts'
import { createPace, type Pace } from './pace.ts'
import type { WorkHandler } from './work.ts'

export interface RetainOptions {
  storage: Storage
  owner: string
  now: () => number
  turnMs?: number
}

/** A pass that finds nothing takes a few statements. */
const PASS_EVERY_MS = 3_600_000
const TURN_MS = 60_000
const RUNS_AT_ONCE = 500

export interface QueueOptions {
  storage: Pick<Storage, 'queueRetention'>
  now: () => number
  wake: () => void
  onError: (error: unknown) => void
  intervalMs?: number
}

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
  return oneByOne({
    kind: 'retain',
    batch: 1,
    storage,
    owner,
    async perform({ environmentId }, _, signal) {
      const turn: Turn = { environmentId, endsAt: now() + turnMs, signal, pace: createPace(storage, signal) }
      return (await pass(options, turn)) ? 'done' : { dueAt: now() }
    },
    // The next pass is queued when it is due.
    giveUp: () => 'done',
  })
}

interface Turn {
  environmentId: string
  endsAt: number
  signal: AbortSignal
  pace: Pace
}

async function pass(options: RetainOptions, turn: Turn): Promise<boolean> {
  const { storage, now } = options
  const { environmentId } = turn
  // Runs that an earlier pass removed: today's settings do not matter for them.
  if (!(await deleteEvents(options, turn))) return false
  if ((await storage.startRetention(environmentId, now())) === null) return true
  if (!(await removeRuns(options, turn)) || !(await removePayloads(options, turn))) return false
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

function removeRuns(options: RetainOptions, turn: Turn): Promise<boolean> {
  const { storage, now } = options
  return eachPage(options, turn, 'runs', async (runs) => {
    for (let rest = runs; rest.length > 0;) {
      if (isOver(options, turn)) return false
      let runsLeft = false
      await turn.pace.slice(async (most) => {
        const slice = sliceOf(rest, most)
        rest = rest.slice(slice.ids.length)
        const removed = await storage.removeExpiredRuns(turn.environmentId, now(), slice)
        runsLeft = removed.runsLeft
        return removed.events
      })
      if (runsLeft && !(await deleteEvents(options, turn))) return false
    }
    return true
  })
}

async function deleteEvents(options: RetainOptions, turn: Turn): Promise<boolean> {
  const { storage, now } = options
  for (let runsLeft = true; runsLeft;) {
    if (isOver(options, turn)) return false
    await turn.pace.slice(async (most) => {
      const deleted = await storage.deleteExpiredEvents(turn.environmentId, now(), most)
      runsLeft = deleted.runsLeft
      return deleted.events
    })
  }
  return true
}

function removePayloads(options: RetainOptions, turn: Turn): Promise<boolean> {
  const { storage, now } = options
  return eachPage(options, turn, 'payloads', async (runs) => {
    for (let rest = runs; rest.length > 0;) {
      if (isOver(options, turn)) return false
      await turn.pace.slice(async (most) => {
        const slice = sliceOf(rest, most)
        const removed = await storage.removeExpiredPayloads(turn.environmentId, now(), slice)
        const left = new Set(removed.rest)
        rest = rest.filter(({ id }, index) => index >= slice.ids.length || left.has(id))
        return removed.events
      })
    }
    return true
  })
}

/** The first of the runs, with about `most` events together. */
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

async function eachPage(
  { storage, now }: RetainOptions,
  { environmentId }: Turn,
  what: RetainedRuns,
  remove: (runs: ExpiredRun[]) => Promise<boolean>,
): Promise<boolean> {
  let after: RunPlace | null = null
  do {
    const found = await storage.listExpiredRuns(environmentId, what, now(), after)
    if (!(await remove(found.runs))) return false
    after = found.after
  } while (after !== null)
  return true
}

function isOver({ now }: RetainOptions, { endsAt, signal }: Turn): boolean {
  return signal.aborted || now() > endsAt
}
