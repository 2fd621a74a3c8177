import type { Deps } from '../deps.ts'

/** Applies a change of credentials on this node immediately. Other nodes notice it within half a second. */
export async function refreshCredentials({
  storage,
  operatorTokens,
  sessions,
}: Pick<Deps, 'storage' | 'operatorTokens' | 'sessions'>): Promise<void> {
  const askedAt = performance.now()
  const revision = await storage.controlRevision()
  operatorTokens.observeRevision(revision, askedAt)
  sessions.observeRevision(revision, askedAt)
}
