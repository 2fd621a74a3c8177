import type { Storage } from '../storage/storage.ts'
import { every, type Job } from './every.ts'

export interface ForgetOptions {
  storage: Pick<Storage, 'deleteExpiredSignIns'>
  now: () => number
  onError: (error: unknown) => void
  intervalMs?: number
}

/** Takes sessions and challenges away that have expired. They are refused without this; it keeps the tables small. */
export function forgetSignIns({ storage, now, onError, intervalMs = 3_600_000 }: ForgetOptions): Job {
  return every({
    intervalMs,
    onError,
    async run() {
      await storage.deleteExpiredSignIns(now())
    },
  })
}
