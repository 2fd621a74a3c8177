/**
 * Keeps the search index of environments up to date. Each environment where search is on has one item in the work
 * queue. After each portion the job rests several times as long as the portion took, so recording keeps most of the
 * processor. While events arrive faster than that, the index falls behind, and says by how much.
 */
import { setTimeout as wait } from 'node:timers/promises'
import type { WorkHandler } from './work.ts'
import type { Storage } from '../storage/storage.ts'

export interface IndexSearchOptions {
  storage: Pick<
    Storage,
    'markOlderRuns' | 'readUnindexed' | 'indexEvents' | 'removeIndexed' | 'failIndexing' | 'postponeWork'
  >
  /** The owner of the work runner. */
  owner: string
  now: () => number
  /** The job rests this many times as long as the portion took. */
  rests?: number
}

const RESTS = 6
/** Between looks for new events. */
const IDLE_MS = 500
/** After this time, the next environment gets its turn. */
const TURN_MS = 2_000

export function indexSearch(options: IndexSearchOptions): WorkHandler {
  const { storage, owner, now } = options
  return {
    kind: 'index_search',
    batch: 1,
    async perform(items, signal) {
      for (const item of items) {
        const isBusy = await follow(item.environmentId, options, signal)
        const dueAt = now() + (isBusy ? 0 : IDLE_MS)
        // If the work has ended, nothing is held.
        await storage.postponeWork(
          { kind: 'index_search', owner, items: [item] },
          { dueAt, error: null, counts: false },
        )
      }
    },
    giveUp: ({ environmentId }, reason) => storage.failIndexing(environmentId, reason),
  }
}

/** Returns whether there is more to do. */
async function follow(
  environmentId: string,
  { storage, rests = RESTS }: IndexSearchOptions,
  signal: AbortSignal,
): Promise<boolean> {
  const end = performance.now() + TURN_MS
  while (performance.now() < end && !signal.aborted) {
    const start = performance.now()
    const settings = await storage.markOlderRuns(environmentId)
    if (settings?.state === 'REMOVING') {
      if (!(await storage.removeIndexed(environmentId))) return false
    } else if (settings === null || settings.waitingRuns === 0) {
      return settings !== null && settings.olderBefore !== null
    } else {
      await storage.indexEvents(environmentId, await storage.readUnindexed(environmentId))
    }
    await wait((performance.now() - start) * rests, undefined, { signal }).catch(() => undefined)
  }
  return true
}
