import type { Storage } from '../storage/storage.ts'
import type { CredentialUse } from '../storage/control.ts'
import { every, type Job } from './every.ts'

export interface UseSource {
  kind: CredentialUse['kind']
  credentials: { takeUses(): Map<string, number> }
}

export interface FlushOptions {
  storage: Pick<Storage, 'touchCredentials'>
  sources: readonly UseSource[]
  onError: (error: unknown) => void
  intervalMs?: number
}

/** About once a minute, and on stop. */
export function flushCredentialUses({ storage, sources, onError, intervalMs = 60_000 }: FlushOptions): Job {
  const job = every({ intervalMs, run: flush, onError })

  // A failed write loses its uses: only hints for people, and the next use is recorded again.
  async function flush(): Promise<void> {
    const uses = sources.flatMap((source) =>
      [...source.credentials.takeUses()].map(([id, at]) => ({ kind: source.kind, id, at })),
    )
    if (uses.length > 0) await storage.touchCredentials(uses)
  }

  return {
    async stop() {
      await job.stop()
      await flush().catch(onError)
    },
  }
}
