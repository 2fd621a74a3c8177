import { IDEMPOTENCY_KEPT_MS } from '../../storage/engine/idempotency.ts'
import { every, type Job, type JobOptions } from './every.ts'

type DeletingActs = 'deleteExpiredSignIns' | 'deleteOldIdempotencyKeys'
const SLICE = 500

export function deleteExpired({ storage, now, onError, intervalMs = 3_600_000 }: JobOptions<DeletingActs>): Job {
  return every({
    intervalMs,
    onError,
    async run() {
      await storage.deleteExpiredSignIns(now())
      const before = now() - IDEMPOTENCY_KEPT_MS
      while ((await storage.deleteOldIdempotencyKeys(before, SLICE)) === SLICE);
    },
  })
}
