import type { Deps } from '../deps.ts'

/** Applies a change of credentials on this node immediately. Other nodes notice it within half a second. */
export async function refreshCredentials({ storage, keys, operatorTokens, sessions }: Deps): Promise<void> {
  const askedAt = performance.now()
  const revision = await storage.controlRevision()
  for (const cache of [keys, operatorTokens, sessions]) cache.observeRevision(revision, askedAt)
}
