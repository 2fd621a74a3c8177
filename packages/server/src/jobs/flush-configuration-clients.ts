import type { ConfigurationClientSeen } from '../storage/configuration-clients.ts'
import { CLIENTS_KEPT_MS } from '../storage/configuration-clients.ts'
import type { Storage } from '../storage/storage.ts'
import { every, type Job } from './every.ts'

export interface FlushClientsOptions {
  storage: Pick<Storage, 'writeConfigurationClients'>
  clients: { take(): ReadonlyMap<string, ConfigurationClientSeen[]> }
  now: () => number
  onError: (error: unknown) => void
  intervalMs?: number
}

/** Once a minute and on stop; one transaction per environment. */
export function flushConfigurationClients({
  storage,
  clients,
  now,
  onError,
  intervalMs = 60_000,
}: FlushClientsOptions): Job {
  const job = every({ intervalMs, run: flush, onError })

  // A failed write loses this minute. The next polls of the same clients are recorded again.
  async function flush(): Promise<void> {
    for (const [environmentId, seen] of clients.take()) {
      await storage.writeConfigurationClients(environmentId, seen, now() - CLIENTS_KEPT_MS).catch(onError)
    }
  }

  return {
    async stop() {
      await job.stop()
      await flush()
    },
  }
}
