import type { RunPlace } from '../../storage/runs/runs.ts'
import type { WorkItem } from '../../storage/engine/work.ts'
import type { HandlerOptions, ItemHandler } from '../engine/work.ts'

const INTERVAL_MS = 60_000

export function closeStalled({ storage, now }: HandlerOptions<'closeStalledRuns'>): ItemHandler {
  const again = (at = 0) => ({ dueAt: Math.max(at, now() + INTERVAL_MS) })

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

  return {
    kind: 'close_stalled',
    batch: 5,
    async perform(item, _, signal) {
      const nextAt = await closeAll(item, signal)
      return nextAt === null ? 'done' : again(nextAt)
    },
    giveUp: async () => again(),
  }
}
