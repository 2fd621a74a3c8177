import { expireOverdue } from '../../domain/approvals/approval.ts'
import { every, type Job, type JobOptions } from './every.ts'

type ExpiringActs = 'listOverdueEnvironments' | 'expireApprovals'

const ENVIRONMENTS_AT_ONCE = 100
const MOST_ROUNDS = 20

/** Lists and streams must show EXPIRED even if no request has read the approval since its deadline. */
export function expireOverdueApprovals({ storage, now, onError, intervalMs = 1_000 }: JobOptions<ExpiringActs>): Job {
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
