import type { CredentialUse } from '../../storage/tenants/control.ts'
import { every, type Job, type JobOptions } from './every.ts'

type UsesOptions = Omit<JobOptions<'touchCredentials'>, 'now'> & {
  sources: readonly { kind: CredentialUse['kind']; credentials: { takeUses(): Map<string, number> } }[]
}

export function flushCredentialUses({ storage, sources, onError, intervalMs = 60_000 }: UsesOptions): Job {
  return every({ intervalMs, run: flush, onError, runsAtEnd: true })

  // A failed write loses its uses: only hints for people, and the next use is recorded again.
  async function flush(): Promise<void> {
    const uses = sources.flatMap(({ kind, credentials }) => {
      return [...credentials.takeUses()].map(([id, at]) => ({ kind, id, at }))
    })
    if (uses.length > 0) await storage.touchCredentials(uses)
  }
}
