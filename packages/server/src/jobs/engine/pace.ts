/**
 * Decides how much one slice of a background job changes, and how long the job pauses after it.
 *
 * The size follows the time that slices take. A slice must be short, because commits of events wait for it, but long
 * enough that its own commit is a small part of it. The pause depends on the load: while events wait for their commit,
 * slices take at most 1/19 of the embedded engine's time, and 1/8 of the time of one connection to PostgreSQL.
 * Including the log and the pages that slices cause, recording loses less than a tenth. The time for which a slice
 * waits for its turn does not count: otherwise a busy store would never finish the work.
 */
import { setTimeout as wait } from 'node:timers/promises'
import type { Storage } from '../../storage/storage.ts'

export interface Pace {
  /** `change` gets the number of rows that it may change, and returns how many it changed. A pause follows. */
  slice(change: (most: number, add: AddWork) => Promise<number>): Promise<number>
}

/** Lengthens the pause for work that delays no commit, such as compressing; in milliseconds. */
export type AddWork = (ms: number) => void

const LEAST = 500
const MOST = 5_000
/** `pauses` are multiples of the slice's time. Busy: events were waiting for their commit when the slice began. */
const ENGINES = {
  // On SQLite, commits wait for a slice.
  sqlite: { sliceMs: { recording: 25, idle: 40 }, pauses: { busy: 18, recording: 8, idle: 0.5 } },
  // On PostgreSQL, a slice delays no commit, and most of it is round trips. But another node may be recording
  // unnoticed.
  postgres: { sliceMs: { recording: 200, idle: 200 }, pauses: { busy: 7, recording: 3, idle: 1 } },
} as const
/** Bounded, so that a disk that is slow for a moment does not stop the work for long. */
const LONGEST_PAUSE_MS = 5_000

/** `patience` multiplies the pauses on a busy store, for work that nothing waits for. */
export function createPace(storage: Pick<Storage, 'gauges' | 'engine'>, signal: AbortSignal, patience = 1): Pace {
  const { sliceMs, pauses } = ENGINES[storage.engine]
  let most = LEAST
  let recorded = storage.gauges().committedEvents

  function load(): 'recording' | 'idle' {
    const { committedEvents, queuedBytes } = storage.gauges()
    const recording = queuedBytes > 0 || committedEvents !== recorded
    recorded = committedEvents
    return recording ? 'recording' : 'idle'
  }

  return {
    async slice(change) {
      const before = storage.gauges()
      let otherMs = 0
      const changed = await change(most, (ms) => (otherMs += ms))
      const took = storage.gauges().actMs - before.actMs
      const during = load()
      const busyShare = took / sliceMs[during]
      // A slice with few changes does not show the speed of a full one.
      if (busyShare > 1) most = Math.max(LEAST, Math.round(most * Math.max(0.5, 1 / busyShare)))
      else if (changed >= most / 2) most = Math.min(MOST, Math.round(most * Math.min(2, 1 / busyShare)))
      const busy = before.queuedBytes > 0
      const times = busy ? pauses.busy * patience : pauses[during]
      const pauseMs = Math.min((took + otherMs) * times, LONGEST_PAUSE_MS * (busy ? patience : 1))
      await wait(pauseMs, undefined, { signal }).catch(() => undefined)
      return changed
    },
  }
}
