import type { Deps } from '../deps.ts'

/** Other nodes notice a change within half a second. */
export async function refreshCredentials({ storage, keys, operatorTokens, sessions }: Deps): Promise<void> {
  const askedAt = performance.now()
  const revision = await storage.controlRevision()
  for (const cache of [keys, operatorTokens, sessions]) cache.observeRevision(revision, askedAt)
}
