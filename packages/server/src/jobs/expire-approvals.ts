import type { ApprovalStore } from '../storage/approvals.ts'
import { every, type Job } from './every.ts'

export interface ExpireOptions {
  storage: Pick<ApprovalStore, 'listOverdueEnvironments' | 'expireApprovals'>
  now: () => number
  onError: (error: unknown) => void
  intervalMs?: number
}

const ENVIRONMENTS_AT_ONCE = 100
const APPROVALS_AT_ONCE = 200
/** What is left over is taken at the next run. */
const MOST_ROUNDS = 20

/**
 * Writes EXPIRED where nobody has looked, so that lists and streams show it. Whoever does look before gets the same: this
 * job only makes it visible. Without overdue approvals it costs one look at a small index.
 */
export function expireApprovals({ storage, now, onError, intervalMs = 1_000 }: ExpireOptions): Job {
  return every({
    intervalMs,
    onError,
    async run() {
      for (const environmentId of await storage.listOverdueEnvironments(now(), ENVIRONMENTS_AT_ONCE)) {
        for (let round = 0; round < MOST_ROUNDS; round++) {
          const expired = await storage.expireApprovals(environmentId, now(), APPROVALS_AT_ONCE)
          if (expired < APPROVALS_AT_ONCE) break
        }
      }
    },
  })
}
