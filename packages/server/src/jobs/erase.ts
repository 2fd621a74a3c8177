/** Finishes erasures: searches the events that were left to search, then deletes them. */
import { setTimeout as wait } from 'node:timers/promises'
import { advanceErasure, type ErasingStore } from '../domain/erasure.ts'
import type { Storage } from '../storage/storage.ts'
import type { WorkItem } from '../storage/work.ts'
import type { WorkHandler } from './work.ts'

export interface EraseOptions {
  storage: ErasingStore & Pick<Storage, 'deleteErased' | 'deferErasure'>
  now: () => number
  /** Events in one transaction. In the pause after it, others write. */
  slice?: number
  pauseMs?: number
}

const AGAIN_MS = 60_000

export function erase({ storage, now, slice = 2_000, pauseMs = 20 }: EraseOptions): WorkHandler {
  async function eraseOne({ environmentId, subjectId: id }: WorkItem, signal: AbortSignal): Promise<void> {
    const isOver = () => {
      signal.throwIfAborted()
      return false
    }
    let erasure = await advanceErasure(storage, { environmentId, id, now, isOver })
    while (erasure?.status === 'REMOVING') {
      signal.throwIfAborted()
      erasure = await storage.deleteErased(environmentId, id, slice, now())
      await wait(pauseMs)
    }
  }

  return {
    kind: 'erase',
    batch: 1,
    async perform(items, signal) {
      for (const item of items) await eraseOne(item, signal)
    },
    // An erasure is a promise: it is never given up.
    giveUp: ({ environmentId, subjectId }, reason) =>
      storage.deferErasure(environmentId, subjectId, now() + AGAIN_MS, reason),
  }
}
