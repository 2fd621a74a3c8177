/** Deletes environments whose waiting time is over, in slices so short that recording into others does not wait. */
import type { Storage } from '../storage/storage.ts'
import type { WorkHold, WorkItem } from '../storage/work.ts'
import { createPace } from './pace.ts'
import type { WorkHandler } from './work.ts'

export interface DeleteEnvironmentsOptions {
  storage: Pick<Storage, 'deleteFromEnvironment' | 'finishWork' | 'postponeWork' | 'gauges' | 'engine'>
  owner: string
  now: () => number
}

const AGAIN_MS = 60_000

export function deleteEnvironments({ storage, owner, now }: DeleteEnvironmentsOptions): WorkHandler {
  const hold = (item: WorkItem): WorkHold => ({ kind: 'delete_environment', owner, items: [item] })

  async function deleteOne(item: WorkItem, signal: AbortSignal): Promise<void> {
    const pace = createPace(storage, signal)
    for (let table: number | null = 0; table !== null;) {
      signal.throwIfAborted()
      const first: number = table
      await pace.slice(async (most) => {
        table = await storage.deleteFromEnvironment(item.environmentId, { table: first, most }, now())
        return most
      })
    }
    // A finished deletion has removed this item. It is still there if the environment was restored.
    await storage.finishWork(hold(item))
  }

  return {
    kind: 'delete_environment',
    batch: 1,
    async perform(items, signal) {
      for (const item of items) await deleteOne(item, signal)
    },
    // Somebody was promised that nothing is left.
    async giveUp(item, reason) {
      await storage.postponeWork(hold(item), { dueAt: now() + AGAIN_MS, error: reason, counts: false })
    },
  }
}
