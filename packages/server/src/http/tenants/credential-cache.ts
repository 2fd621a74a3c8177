import { LRUCache } from 'lru-cache'
import { sameHash, type Credential } from '../../domain/people/credential.ts'

export interface StoredCredential extends Credential {
  expiresAt: number | null
  revokedAt: number | null
}

interface CredentialCacheOptions<Row extends StoredCredential> {
  parse: (text: string) => Credential | null
  load: (id: string) => Promise<Row | null>
  monotonicNow?: () => number
  maxEntries?: number
}

export type CredentialCache<Row extends StoredCredential> = ReturnType<typeof createCredentialCache<Row>>

const TRUST_MS = 5_000

/**
 * A new control-table revision clears the cache, and a silent store disables it, so every node obeys a revocation
 * within 5 seconds. Unknown ids are cached too, but never evict known ones.
 */
export function createCredentialCache<Row extends StoredCredential>({
  parse,
  load,
  monotonicNow = () => performance.now(),
  maxEntries = 10_000,
}: CredentialCacheOptions<Row>) {
  // Not `max`, which would reserve the memory of all entries at once: 2 MB for all credentials.
  const bound = { maxSize: maxEntries, sizeCalculation: () => 1 }
  const known = new LRUCache<string, Row>(bound)
  const unknown = new LRUCache<string, true>(bound)
  // Keyed by the presented text, so a verified key costs no hash. The map's timing reveals no secret: it compares texts
  // only if their seeded hashes match.
  const verified = new LRUCache<string, Row>(bound)
  const uses = new Map<string, number>()
  const loads = shareLoads(load, remember)
  let revision = Number.NaN
  let observedAt = Number.NEGATIVE_INFINITY

  function find(text: string, now: number): Row | null | Promise<Row | null> {
    const isTrusted = trustsMemory()
    const row = isTrusted ? verified.get(text) : undefined
    return row ? validRow(row, now) : verify(text, now, isTrusted)
  }

  function findRemembered(text: string, now: number): Row | null {
    const row = trustsMemory() ? verified.get(text) : undefined
    return row ? validRow(row, now) : null
  }

  function trustsMemory(): boolean {
    return monotonicNow() - observedAt < TRUST_MS
  }

  async function verify(text: string, now: number, isTrusted: boolean): Promise<Row | null> {
    const presented = parse(text)
    if (!presented) return null
    const row = await lookUp(presented.id, isTrusted)
    if (!row || !sameHash(row.hash, presented.hash)) return null
    // Cache only a row that is still cached, because only such rows follow changes of the control tables.
    if (known.peek(row.id) === row) verified.set(text, row)
    return validRow(row, now)
  }

  function validRow(row: Row, now: number): Row | null {
    if (!isValid(row, now)) return null
    uses.set(row.id, now)
    return row
  }

  function lookUp(id: string, isTrusted: boolean): Row | null | Promise<Row | null> {
    if (!isTrusted) return loads.load(id)
    const row = known.get(id)
    if (row) return row
    return unknown.has(id) ? null : loads.load(id)
  }

  function remember(id: string, row: Row | null): void {
    if (row) known.set(id, row)
    else unknown.set(id, true)
  }

  return {
    find,
    findRemembered,
    /** `askedAt`: monotonic time at which the store was asked, not at which it answered. */
    observeRevision(newRevision: number, askedAt: number): void {
      observedAt = Math.max(observedAt, askedAt)
      if (newRevision === revision) return
      revision = newRevision
      known.clear()
      unknown.clear()
      verified.clear()
      loads.forgetAll()
    },
    takeUses(): Map<string, number> {
      const taken = new Map(uses)
      uses.clear()
      return taken
    },
    size: () => known.size + unknown.size,
  }
}

function isValid(row: StoredCredential, now: number): boolean {
  return row.revokedAt === null && (row.expiresAt === null || now < row.expiresAt)
}

export function shareLoads<Value>(read: (key: string) => Promise<Value>, keep: (key: string, value: Value) => void) {
  const running = new Map<string, Promise<Value>>()

  function load(key: string): Promise<Value> {
    const shared = running.get(key)
    if (shared) return shared
    const isCurrent = () => running.get(key) === started
    const started = read(key)
      .then((value) => {
        if (isCurrent()) keep(key, value)
        return value
      })
      .finally(() => {
        if (isCurrent()) running.delete(key)
      })
    running.set(key, started)
    return started
  }

  return {
    load,
    /** Running reads of this key may be stale: their callers get the values, but nothing is cached. */
    forget: (key: string) => void running.delete(key),
    forgetAll: () => running.clear(),
  }
}
