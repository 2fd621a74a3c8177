/**
 * How much one slice of retention removes, and how long the next one waits.
 *
 * The size follows the time that slices take: one must be short, because commits of events wait for it. The pause follows
 * what else the store does: while events are recorded, slices take at most a thirteenth of the time. Together with the
 * log and the pages that they cause, this costs recording less than a tenth.
 */
import { setTimeout as wait } from 'node:timers/promises'
import type { Storage } from '../storage/storage.ts'

export interface Pace {
  /** Runs one slice, which gets how much it may remove and returns how much it removed, and then pauses. */
  slice(remove: (most: number) => Promise<number>): Promise<number>
  /** Runs one slice of a fixed size, and then pauses. */
  fixed(remove: () => Promise<unknown>): Promise<void>
}

const FIRST = 200
const LEAST = 20
const MOST = 5_000
const SHORT_MS = 10
const LONG_MS = 40
/** Pauses, in times of the slice. */
const WHILE_RECORDING = 12
const WHILE_IDLE = 0.5
/** A slice that waited long for its turn says that the store is busy. It does not ask for more than this pause. */
const LONGEST_PAUSE_MS = 5_000

export function createPace(storage: Pick<Storage, 'gauges' | 'engine'>, signal: AbortSignal): Pace {
  let most = FIRST
  let recorded = storage.gauges().committedEvents

  /** Another node may record into PostgreSQL, which this one cannot see. */
  function isRecording(): boolean {
    const { committedEvents, queuedBytes } = storage.gauges()
    const is = storage.engine === 'postgres' || queuedBytes > 0 || committedEvents !== recorded
    recorded = committedEvents
    return is
  }

  /** Runs one slice and pauses. Returns how long it took, as a part of what it should take. */
  async function paced(work: () => Promise<unknown>): Promise<number> {
    const startedAt = performance.now()
    await work()
    const took = performance.now() - startedAt
    const recording = isRecording()
    const pause = Math.min(took * (recording ? WHILE_RECORDING : WHILE_IDLE), LONGEST_PAUSE_MS)
    await wait(pause, undefined, { signal }).catch(() => undefined)
    return took / (recording ? SHORT_MS : LONG_MS)
  }

  return {
    async fixed(remove) {
      await paced(remove)
    },
    async slice(remove) {
      let removed = 0
      const part = await paced(async () => (removed = await remove(most)))
      // A slice that removed little says nothing about a full one.
      if (part > 1) most = Math.max(LEAST, Math.round(most * Math.max(0.5, 1 / part)))
      else if (removed >= most) most = Math.min(MOST, Math.round(most * Math.min(2, 1 / part)))
      return removed
    },
  }
}
