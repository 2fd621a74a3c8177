import type { Storage } from '../storage/storage.ts'
import type { WorkHold, WorkItem, WorkKind } from '../storage/work.ts'
import type { WorkHandler } from './work.ts'

/** `ended`: the storage act that did the work also ended the item. */
export type Next = 'done' | 'ended' | { dueAt: number }

export interface OneByOne {
  kind: WorkKind
  batch: number
  inTurn?: boolean
  storage: Pick<Storage, 'finishWork' | 'postponeWork'>
  owner: string
  perform(item: WorkItem, hold: WorkHold, signal: AbortSignal): Promise<Next>
  giveUp(item: WorkItem, reason: string): Promise<Next> | Next
}

/** Items do not share transactions. */
export function oneByOne({ storage, owner, perform, giveUp, ...handler }: OneByOne): WorkHandler {
  const holdOf = (item: WorkItem): WorkHold => ({ kind: handler.kind, owner, items: [item] })

  async function settle(item: WorkItem, next: Next, error: string | null): Promise<void> {
    if (next === 'done') await storage.finishWork(holdOf(item))
    else if (next !== 'ended') await storage.postponeWork(holdOf(item), { dueAt: next.dueAt, error, counts: false })
  }

  return {
    ...handler,
    async perform(items, signal) {
      for (const item of items) await settle(item, await perform(item, holdOf(item), signal), null)
    },
    async giveUp(item, reason) {
      await settle(item, await giveUp(item, reason), reason)
    },
  }
}
