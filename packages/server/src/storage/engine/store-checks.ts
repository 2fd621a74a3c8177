import { NO_PAYLOADS, payloadsCheck, type PayloadsChecked } from '../sql/engine/checksum-checks.ts'
import { type StoreCheck, type StoreTrouble, StorageError, StoreAway } from './store.ts'

export const MIB = 1_048_576
/**
 * A larger store is checked in slices: reading it at once would take too much disk or database time from the service.
 */
const LARGE_BYTES = 1_024 * MIB
/** Time that one check by `tacho doctor` spends on the payloads of a larger store. */
const SLICE_MS = 5_000

export interface PayloadSlices {
  isLarge(bytes: number): boolean
  next(): { done: PayloadsChecked; budgetMs: number }
  /** After the last slice, the check starts again at the beginning. */
  checked(slice: PayloadsChecked): StoreCheck
}

/** Spreads the check of a large store's payloads over several runs of `tacho doctor`. */
export function createPayloadSlices({ largeBytes = LARGE_BYTES, budgetMs = SLICE_MS } = {}): PayloadSlices {
  let done = NO_PAYLOADS
  return {
    isLarge: (bytes) => bytes > largeBytes,
    next: () => ({ done, budgetMs }),
    checked(slice) {
      done = slice.next === null ? NO_PAYLOADS : slice
      return payloadsCheck(slice)
    },
  }
}

export function mib(bytes: number): string {
  return `${Math.round(bytes / MIB).toLocaleString('en')} MiB`
}

export function queueCheck({ queuedBytes, queueBytes }: Record<'queuedBytes' | 'queueBytes', number>, where = '') {
  const detail = `${mib(queuedBytes)} of at most ${mib(queueBytes)} of events wait for a commit${where}`
  return { name: 'queue', ok: queuedBytes < queueBytes / 2, detail }
}

/**
 * How long the oldest write has waited for its commit. A write that gives up, for example after a lock timeout, keeps
 * counting from its start until any write succeeds, because it is tried again.
 */

export type WaitingCommits = ReturnType<typeof createWaitingCommits>

/** A failed write is forgotten if no other is tried for this long. */
const FORGOTTEN_MS = 60_000

export function createWaitingCommits(now: () => number = () => performance.now()) {
  /** Writes that wait, in the order in which they began. */
  const waiting = new Set<{ since: number }>()
  let failing: { since: number; until: number } | null = null

  function oldestMs(): number {
    const [oldest] = waiting
    if (failing !== null && waiting.size === 0 && now() - failing.until > FORGOTTEN_MS) failing = null
    const since = Math.min(oldest?.since ?? Infinity, failing?.since ?? Infinity)
    return since === Infinity ? 0 : now() - since
  }

  return {
    async during<Result>(work: Promise<Result>): Promise<Result> {
      const ownCheck = { since: now() }
      waiting.add(ownCheck)
      try {
        const result = await work
        failing = null
        return result
      } catch (error) {
        // Count only writes that were blocked: an unreachable store reports its own reason, and other errors are the caller's.
        const isBlocked = error instanceof StorageError && error.code === 'storage_unavailable'
        if (isBlocked && !(error instanceof StoreAway))
          failing = { since: failing?.since ?? ownCheck.since, until: now() }
        throw error
      } finally {
        waiting.delete(ownCheck)
      }
    },
    /** How long ago the latest write gave up; null: none did, one succeeded since, or one waits now. */
    gaveUpAgoMs: (): number | null => (failing === null || waiting.size > 0 ? null : now() - failing.until),
    /** Forgets failed writes, because what blocked them is gone. */
    forget(): void {
      failing = null
    },
    oldestMs,
    /** Null: the oldest write has not waited longer than `mostMs`. */
    trouble(mostMs: number): StoreTrouble | null {
      const waited = oldestMs()
      if (waited <= mostMs) return null
      const reason = `Nothing can be committed: the oldest write has waited ${Math.round(waited / 1000)} s`
      return { code: 'storage_unavailable', reason }
    },
  }
}
