import { setTimeout as wait } from 'node:timers/promises'
import { advanceErasure, type ErasingStore } from '../../domain/data/erasure.ts'
import type { HandlerOptions, ItemHandler } from '../engine/work.ts'
import { createPace } from '../engine/pace.ts'

interface EraseOptions extends HandlerOptions<keyof ErasingStore | 'deleteErased' | 'deferErasure'> {
  /** Events in one transaction. Other writes run in the pause after it. */
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
    // Retries forever, because an erasure was promised.
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
      // A finished deletion has removed this item. If the environment was restored, the item is still there.
      return 'done'
    },
    // Retries forever, because the user was promised that nothing is left.
    giveUp: async () => ({ dueAt: now() + DELETE_AGAIN_MS }),
  }
}
