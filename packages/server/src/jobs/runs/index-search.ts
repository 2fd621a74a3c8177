/**
 * Indexes runs for the search. Pauses leave most of the processor time to recording. If events arrive faster than that,
 * the index falls behind and reports it.
 */
import { setTimeout as wait } from 'node:timers/promises'
import type { HandlerOptions, ItemHandler } from '../engine/work.ts'

type Acts = 'markOlderRuns' | 'readUnindexed' | 'indexEvents' | 'removeIndexed' | 'failIndexing'
type Options = HandlerOptions<Acts> & { rests?: number }

const RESTS = 6
const IDLE_MS = 500
const TURN_MS = 2_000

export function indexSearch(options: Options): ItemHandler {
  const { storage, now } = options
  return {
    kind: 'index_search',
    batch: 1,
    async perform({ environmentId }, _, signal) {
      const isBusy = await follow(environmentId, options, signal)
      return { dueAt: now() + (isBusy ? 0 : IDLE_MS) }
    },
    async giveUp({ environmentId }, reason) {
      await storage.failIndexing(environmentId, reason)
      return 'ended'
    },
  }
}

async function follow(
  environmentId: string,
  { storage, rests = RESTS }: Options,
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
