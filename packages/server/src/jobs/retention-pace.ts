/**
 * How much one slice of retention removes, and how long the next one waits.
 *
 * The size follows the time that slices take: one must be short, because commits of events wait for it, but not so short
 * that its own commit is most of it. The pause follows what else the store does: while events wait for their commit, slices
 * take at most a nineteenth of the time. Together with the log and the pages that they cause, this costs recording less
 * than a tenth. The time a slice waits for its turn does not count: otherwise a busy store would remove nothing.
 */
import { setTimeout as wait } from 'node:timers/promises'
import type { Storage } from '../storage/storage.ts'

export interface Pace {
  /** Runs one slice, which gets how much it may remove and returns how much it removed, and then pauses. */
  slice(remove: (most: number) => Promise<number>): Promise<number>
}

const LEAST = 500
const MOST = 5_000
/** Commits of the embedded engine wait for a slice. On PostgreSQL it delays none, and most of it is round trips. */
const SHORT_MS = { sqlite: 25, postgres: 200 } as const
const LONG_MS = 40
/** Pauses, in times of the slice. Busy: events waited for their commit when it began. */
const WHILE_BUSY = 18
const WHILE_RECORDING = 8
const WHILE_IDLE = 0.5
/** A disk that is slow for a moment does not stop the removal for long. */
const LONGEST_PAUSE_MS = 5_000

export function createPace(storage: Pick<Storage, 'gauges' | 'engine'>, signal: AbortSignal): Pace {
  let most = LEAST
  let recorded = storage.gauges().committedEvents

  /** Another node may record into PostgreSQL, which this one cannot see. */
  function isRecording(): boolean {
    const { committedEvents, queuedBytes } = storage.gauges()
    const is = storage.engine === 'postgres' || queuedBytes > 0 || committedEvents !== recorded
    recorded = committedEvents
    return is
  }

  return {
    async slice(remove) {
      const before = storage.gauges()
      const removed = await remove(most)
      const took = storage.gauges().actMs - before.actMs
      const recording = isRecording()
      const part = took / (recording ? SHORT_MS[storage.engine] : LONG_MS)
      // A slice that removed little says nothing about a full one.
      if (part > 1) most = Math.max(LEAST, Math.round(most * Math.max(0.5, 1 / part)))
      else if (removed >= most / 2) most = Math.min(MOST, Math.round(most * Math.min(2, 1 / part)))
      const times = before.queuedBytes > 0 ? WHILE_BUSY : recording ? WHILE_RECORDING : WHILE_IDLE
      await wait(Math.min(took * times, LONGEST_PAUSE_MS), undefined, { signal }).catch(() => undefined)
      return removed
    },
  }
}
