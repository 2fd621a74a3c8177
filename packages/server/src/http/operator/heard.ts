import type { Deps } from '../deps.ts'

/** What has just changed holds on this node at once; the others hear of it within half a second. */
export async function hearNow({
  storage,
  operatorTokens,
  sessions,
}: Pick<Deps, 'storage' | 'operatorTokens' | 'sessions'>): Promise<void> {
  const askedAt = performance.now()
  const revision = await storage.controlRevision()
  operatorTokens.heard(revision, askedAt)
  sessions.heard(revision, askedAt)
}
