import { every, type Job, type JobOptions } from './every.ts'

type RevisionOptions = Omit<JobOptions<'controlRevision'>, 'now'> & {
  listeners: readonly { observeRevision(revision: number, askedAt: number): void }[]
}

/** Sends nothing while the store is silent. */
export function followControlRevision({ storage, listeners, onError, intervalMs = 500 }: RevisionOptions): Job {
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
