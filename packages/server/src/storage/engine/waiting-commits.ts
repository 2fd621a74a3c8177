/**
 * How long the oldest write has waited for its commit. Writes that give up, such as after a lock timeout, and come again have
 * waited since the first of them, as long as none succeeds.
 */
import { StorageError, StoreAway } from './store.ts'

export type WaitingCommits = ReturnType<typeof createWaitingCommits>

/** Nobody has tried for this long. */
const FORGOTTEN_MS = 60_000

export function createWaitingCommits(now: () => number = () => performance.now()) {
  /** In the order of their begin. */
  const waiting = new Set<{ since: number }>()
  let failing: { since: number; until: number } | null = null

  return {
    async during<Result>(work: Promise<Result>): Promise<Result> {
      const own = { since: now() }
      waiting.add(own)
      try {
        const result = await work
        failing = null
        return result
      } catch (error) {
        // A store that is away has reasons of its own, and other errors are the caller's.
        const isBlocked = error instanceof StorageError && error.code === 'storage_unavailable'
        if (isBlocked && !(error instanceof StoreAway)) failing = { since: failing?.since ?? own.since, until: now() }
        throw error
      } finally {
        waiting.delete(own)
      }
    },
    oldestMs(): number {
      const [oldest] = waiting
      if (failing !== null && waiting.size === 0 && now() - failing.until > FORGOTTEN_MS) failing = null
      const since = Math.min(oldest?.since ?? Infinity, failing?.since ?? Infinity)
      return since === Infinity ? 0 : now() - since
    },
  }
}
