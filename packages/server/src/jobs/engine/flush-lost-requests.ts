import type { LostRequests } from '../../storage/tenants/api-keys.ts'
import { every, type Job, type JobOptions } from './every.ts'

type LostRequestsOptions = Omit<JobOptions<'addLostRequests'>, 'now'> & { lostRequests: { take(): LostRequests[] } }

/** Often, because a person who sets up an exporter looks at once. */
export function flushLostRequests({ storage, lostRequests, onError, intervalMs = 2_000 }: LostRequestsOptions): Job {
  return every({ intervalMs, run: flush, onError, runsAtEnd: true })

  async function flush(): Promise<void> {
    const lost = lostRequests.take()
    if (lost.length > 0) await storage.addLostRequests(lost)
  }
}
