import { setTimeout as wait } from 'node:timers/promises'
import { advanceErasure, type ErasingStore } from '../../domain/data/erasure.ts'
import type { HandlerOptions, ItemHandler } from '../engine/work.ts'
import { createPace } from '../engine/pace.ts'

interface EraseOptions extends HandlerOptions<keyof ErasingStore | 'deleteErased' | 'deferErasure'> {
  /** Events in one transaction. In the pause after it, others write. */
  slice?: number
  pauseMs?: number
}

const AGAIN_MS = 60_000

export function erase({ storage, now, slice = 2_000, pauseMs = 20 }: EraseOptions): ItemHandler {
  return {
    kind: 'erase',
    batch: 1,
    async perform({ environmentId, subjectId: id }, _, signal) {
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
      return 'ended'
    },
    // An erasure is a promise: it is never given up.
    async giveUp({ environmentId, subjectId }, reason) {
      await storage.deferErasure(environmentId, subjectId, now() + AGAIN_MS, reason)
      return 'ended'
    },
  }
}

const DELETE_AGAIN_MS = 60_000

type Acts = 'deleteFromEnvironment' | 'gauges' | 'engine'

export function deleteEnvironments({ storage, now }: HandlerOptions<Acts>): ItemHandler {
  return {
    kind: 'delete_environment',
    batch: 1,
    async perform({ environmentId }, _, signal) {
      const pace = createPace(storage, signal)
      for (let table: number | null = 0; table !== null;) {
        signal.throwIfAborted()
        const first: number = table
        await pace.slice(async (most) => {
          table = await storage.deleteFromEnvironment(environmentId, { table: first, most }, now())
          return most
        })
      }
      // A finished deletion has removed this item. It is still there if the environment was restored.
      return 'done'
    },
    // The user was promised that nothing is left.
    giveUp: async () => ({ dueAt: now() + DELETE_AGAIN_MS }),
  }
}
