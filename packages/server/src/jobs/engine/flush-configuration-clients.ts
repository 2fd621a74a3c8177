import { CLIENTS_KEPT_MS, type ConfigurationClientSeen } from '../../storage/policies/configuration-clients.ts'
import { every, type Job, type JobOptions } from './every.ts'

type ClientsOptions = JobOptions<'writeConfigurationClients'> & {
  clients: { take(): ReadonlyMap<string, ConfigurationClientSeen[]> }
}

export function flushConfigurationClients({
  storage,
  clients,
  now,
  onError,
  intervalMs = 60_000,
}: ClientsOptions): Job {
  return every({ intervalMs, run: flush, onError, runsAtEnd: true })

  // A failed write loses this minute. The next polls of the same clients are recorded again.
  async function flush(): Promise<void> {
    for (const [environmentId, seen] of clients.take()) {
      await storage.writeConfigurationClients(environmentId, seen, now() - CLIENTS_KEPT_MS).catch(onError)
    }
  }
}
