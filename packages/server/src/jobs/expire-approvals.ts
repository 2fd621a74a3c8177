import { expireOverdue } from '../domain/approval.ts'
import { every, type Job } from './every.ts'
import type { Storage } from '../storage/storage.ts'

export interface ExpireOptions {
  storage: Pick<Storage, 'listOverdueEnvironments' | 'expireApprovals'>
  now: () => number
  onError: (error: unknown) => void
  intervalMs?: number
}

const ENVIRONMENTS_AT_ONCE = 100
/** The next run handles the remaining ones. */
const MOST_ROUNDS = 20

/**
 * Lists and streams must show EXPIRED even if no request has read the approval since its deadline. Without overdue
 * approvals, a run reads only a small index.
 */
export function expireOverdueApprovals({ storage, now, onError, intervalMs = 1_000 }: ExpireOptions): Job {
  return every({
    intervalMs,
    onError,
    async run() {
      for (const environmentId of await storage.listOverdueEnvironments(now(), ENVIRONMENTS_AT_ONCE)) {
        await expireOverdue(storage, environmentId, now(), { mostRounds: MOST_ROUNDS })
      }
    },
  })
}
