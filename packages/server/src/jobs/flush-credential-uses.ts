import type { CredentialUse } from '../storage/control.ts'
import { every, type Job, type JobOptions } from './every.ts'

export interface UseSource {
  kind: CredentialUse['kind']
  credentials: { takeUses(): Map<string, number> }
}

export interface FlushOptions extends Omit<JobOptions<'touchCredentials'>, 'now'> {
  sources: readonly UseSource[]
}

export function flushCredentialUses({ storage, sources, onError, intervalMs = 60_000 }: FlushOptions): Job {
  return every({ intervalMs, run: flush, onError, runsAtEnd: true })

  // A failed write loses its uses: only hints for people, and the next use is recorded again.
  async function flush(): Promise<void> {
    const uses = sources.flatMap((source) =>
      [...source.credentials.takeUses()].map(([id, at]) => ({ kind: source.kind, id, at })),
    )
    if (uses.length > 0) await storage.touchCredentials(uses)
  }
}
