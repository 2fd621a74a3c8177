import { createPace } from '../engine/pace.ts'
import type { HandlerOptions, ItemHandler } from '../engine/work.ts'

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
