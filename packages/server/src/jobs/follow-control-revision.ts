import type { Storage } from '../storage/storage.ts'
import { every, type Job } from './every.ts'

export interface RevisionListener {
  observeRevision(revision: number, askedAt: number): void
}

export interface FollowOptions {
  storage: Pick<Storage, 'controlRevision'>
  listeners: readonly RevisionListener[]
  onError: (error: unknown) => void
  intervalMs?: number
}

/** Sends nothing while the store is silent. */
export function followControlRevision({ storage, listeners, onError, intervalMs = 500 }: FollowOptions): Job {
  return every({
    intervalMs,
    onError,
    async run() {
      const askedAt = performance.now()
      const revision = await storage.controlRevision()
      for (const listener of listeners) listener.observeRevision(revision, askedAt)
    },
  })
}
