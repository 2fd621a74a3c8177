import type { RunPlace } from '../storage/runs.ts'
import type { WorkItem } from '../storage/work.ts'
import { oneByOne } from './one-by-one.ts'
import type { Storage } from '../storage/storage.ts'
import type { WorkHandler } from './work.ts'

export interface CloseStalledOptions {
  storage: Pick<Storage, 'closeStalledRuns' | 'finishWork' | 'postponeWork'>
  owner: string
  now: () => number
  intervalMs?: number
}

export function closeStalled({ storage, owner, now, intervalMs = 60_000 }: CloseStalledOptions): WorkHandler {
  const again = (at = 0) => ({ dueAt: Math.max(at, now() + intervalMs) })

  /** When to look again; null if the rule closes nothing any more. */
  async function closeAll({ environmentId }: WorkItem, signal: AbortSignal): Promise<number | null> {
    let nextAt = 0
    let after: RunPlace | null = null
    do {
      signal.throwIfAborted()
      const closed = await storage.closeStalledRuns(environmentId, now(), after)
      if (!closed.isOn) return null
      nextAt = closed.nextAt ?? 0
      after = closed.after
    } while (after !== null)
    return nextAt
  }

  return oneByOne({
    kind: 'close_stalled',
    batch: 5,
    storage,
    owner,
    async perform(item, _, signal) {
      const nextAt = await closeAll(item, signal)
      return nextAt === null ? 'done' : again(nextAt)
    },
    giveUp: () => again(),
  })
}
