/**
 * The store marks overdue approvals EXPIRED before any caller sees that status. A thousand clients may share a
 * deadline, so concurrent requests of one environment share one write.
 */
import { expireOverdue, isOverdue } from '../../domain/approvals/approval.ts'
import type { ApprovalRow } from '../../storage/approvals/approvals.ts'
import type { Page } from '../../storage/engine/page.ts'
import type { Storage } from '../../storage/storage.ts'
import { StorageError } from '../../storage/engine/store.ts'

export interface CurrentOptions {
  storage: Pick<Storage, 'findApproval' | 'expireApprovals'>
  now: () => number
  onChange: () => void
}

/** Stops the loop if the clock runs wild. */
const MOST_ROUNDS = 5

export function createCurrentApprovals({ storage, now, onChange }: CurrentOptions) {
  const neededUpTo = new Map<string, number>()
  const expireShared = sharing(async (environmentId) => {
    const upTo = neededUpTo.get(environmentId) ?? now()
    neededUpTo.delete(environmentId)
    await expireOverdue(storage, environmentId, upTo, { onExpired: onChange })
  })

  // A read that found an approval overdue has it expired at its own time: a clock that goes back would leave it PENDING.
  function expire(environmentId: string, at: number): Promise<void> {
    neededUpTo.set(environmentId, Math.max(at, neededUpTo.get(environmentId) ?? at))
    return expireShared(environmentId)
  }

  async function read(environmentId: string, readPage: () => Promise<Page<ApprovalRow>>): Promise<Page<ApprovalRow>> {
    const at = now()
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const page = await readPage()
      if (!page.rows.some((row) => isOverdue(row, at))) return page
      await expire(environmentId, at)
    }
    throw new StorageError('overloaded', 'Approvals expire faster than they can be recorded')
  }

  return {
    read,
    async find(environmentId: string, id: string): Promise<ApprovalRow | null> {
      const { rows } = await read(environmentId, async () => {
        const row = await storage.findApproval(environmentId, id)
        return { rows: row ? [row] : [], more: false }
      })
      return rows[0] ?? null
    },
  }
}

/** Calls during a run share the next run, because the current one may have started too early. */
function sharing(work: (key: string) => Promise<void>): (key: string) => Promise<void> {
  const running = new Map<string, Promise<void>>()
  const waiting = new Map<string, Promise<void>>()

  function start(key: string): Promise<void> {
    const run = work(key).finally(() => running.delete(key))
    running.set(key, run)
    return run
  }

  return (key) => {
    const current = running.get(key)
    if (!current) return start(key)
    let next = waiting.get(key)
    if (!next) {
      next = current
        .catch(() => undefined)
        .then(() => {
          waiting.delete(key)
          return start(key)
        })
      waiting.set(key, next)
    }
    return next
  }
}
