import type { Storage } from '../storage/storage.ts'
import { every, type Job } from './every.ts'

/** What follows the control tables: the caches of credentials. */
export interface RevisionListener {
  observeRevision(revision: number, askedAt: number): void
}

export interface FollowOptions {
  storage: Pick<Storage, 'controlRevision'>
  listeners: readonly RevisionListener[]
  onError: (error: unknown) => void
  intervalMs?: number
}

/** Tells the listeners every half second which revision the store has; while it is silent, they are told nothing. */
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
