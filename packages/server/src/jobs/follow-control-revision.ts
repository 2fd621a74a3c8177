import { every, type Job, type JobOptions } from './every.ts'

export interface RevisionListener {
  observeRevision(revision: number, askedAt: number): void
}

export interface FollowOptions extends Omit<JobOptions<'controlRevision'>, 'now'> {
  listeners: readonly RevisionListener[]
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
