/** Closes stalled runs where the rule of an environment says so, once a minute. */
import type { RunPlace } from '../storage/runs.ts'
import type { StalledStore } from '../storage/stalled.ts'
import type { WorkHold, WorkItem, WorkStore } from '../storage/work.ts'
import type { WorkHandler } from './work.ts'

export interface CloseStalledOptions {
  storage: Pick<StalledStore, 'closeStalledRuns'> & Pick<WorkStore, 'finishWork' | 'postponeWork'>
  owner: string
  now: () => number
  intervalMs?: number
}

export function closeStalled({ storage, owner, now, intervalMs = 60_000 }: CloseStalledOptions): WorkHandler {
  const hold = (item: WorkItem): WorkHold => ({ kind: 'close_stalled', owner, items: [item] })
  const again = () => ({ dueAt: now() + intervalMs, error: null, counts: false })

  /** Returns whether the rule still closes runs. */
  async function closeAll({ environmentId }: WorkItem, signal: AbortSignal): Promise<boolean> {
    let after: RunPlace | null = null
    do {
      signal.throwIfAborted()
      const closed = await storage.closeStalledRuns(environmentId, now(), after)
      if (!closed.isOn) return false
      after = closed.after
    } while (after !== null)
    return true
  }

  return {
    kind: 'close_stalled',
    batch: 5,
    async perform(items, signal) {
      for (const item of items) {
        if (await closeAll(item, signal)) await storage.postponeWork(hold(item), again())
        else await storage.finishWork(hold(item))
      }
    },
    async giveUp(item, reason) {
      await storage.postponeWork(hold(item), { ...again(), error: reason })
    },
  }
}
