/** Deletes in slices so short that recording into other environments does not wait. */
import type { Storage } from '../storage/storage.ts'
import type { WorkItem } from '../storage/work.ts'
import { oneByOne } from './one-by-one.ts'
import { createPace } from './pace.ts'
import type { WorkHandler } from './work.ts'

export interface DeleteEnvironmentsOptions {
  storage: Pick<Storage, 'deleteFromEnvironment' | 'finishWork' | 'postponeWork' | 'gauges' | 'engine'>
  owner: string
  now: () => number
}

const AGAIN_MS = 60_000

export function deleteEnvironments({ storage, owner, now }: DeleteEnvironmentsOptions): WorkHandler {
  async function deleteOne({ environmentId }: WorkItem, signal: AbortSignal): Promise<void> {
    const pace = createPace(storage, signal)
    for (let table: number | null = 0; table !== null;) {
      signal.throwIfAborted()
      const first: number = table
      await pace.slice(async (most) => {
        table = await storage.deleteFromEnvironment(environmentId, { table: first, most }, now())
        return most
      })
    }
  }

  return oneByOne({
    kind: 'delete_environment',
    batch: 1,
    storage,
    owner,
    async perform(item, _, signal) {
      await deleteOne(item, signal)
      // A finished deletion has removed this item. It is still there if the environment was restored.
      return 'done'
    },
    // The user was promised that nothing is left.
    giveUp: () => ({ dueAt: now() + AGAIN_MS }),
  })
}
