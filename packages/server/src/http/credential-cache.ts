import { LRUCache } from 'lru-cache'
import { sameHash, type Credential } from '../domain/credential.ts'

/** What every kind of credential is stored with. */
export interface StoredCredential extends Credential {
  expiresAt: number | null
  revokedAt: number | null
}

export interface CredentialCacheOptions<Row extends StoredCredential> {
  /** The id and hash of a presented text; null when it cannot be a credential at all. */
  parse: (text: string) => Credential | null
  /** Reads the stored row; null when the id is unknown. */
  load: (id: string) => Promise<Row | null>
  /** Milliseconds of a clock that never jumps. */
  monotonicNow?: () => number
  /** Most known and most unknown ids that are kept, each. */
  maxEntries?: number
}

export interface CredentialCache<Row extends StoredCredential> {
  /**
   * The row of a credential that is good at `now` (milliseconds since 1970); null for every other text, without saying
   * why. At once where it is remembered. Rejects with the store's error when it had to be asked and could not answer.
   */
  find(text: string, now: number): Row | null | Promise<Row | null>
  /** The row of a credential that was verified before and is still remembered; never asks the store. */
  findRemembered(text: string, now: number): Row | null
  /** The revision of the control tables that the store told when asked at `askedAt`, by the monotonic clock. */
  observeRevision(revision: number, askedAt: number): void
  /** When each id was last used with success, since the last call. */
  takeUses(): Map<string, number>
  /** Ids kept just now, for tests and metrics. */
  size(): number
}

/** A node that has not heard from the store for this long trusts nothing it remembers. */
const TRUST_MS = 5_000

/**
 * Remembers looked-up credentials, unknown ids too, so that a request costs microseconds. Whatever is remembered goes
 * when the revision of the control tables changes, and is not used while the store is silent: so a revocation holds on
 * every node within 5 seconds. Memory is bounded, and unknown ids never push out known ones.
 */
export function createCredentialCache<Row extends StoredCredential>({
  parse,
  load,
  monotonicNow = () => performance.now(),
  maxEntries = 10_000,
}: CredentialCacheOptions<Row>): CredentialCache<Row> {
  const known = new LRUCache<string, Row>({ max: maxEntries })
  const unknown = new LRUCache<string, true>({ max: maxEntries })
  // By the text as presented: a request with a key that was verified before costs no hash. Finding a text by this map
  // tells nothing of a secret: a text is compared only where its seeded hash is the same.
  const verified = new LRUCache<string, Row>({ max: maxEntries })
  const uses = new Map<string, number>()
  let loading = new Map<string, Promise<Row | null>>()
  let revision = Number.NaN
  let heardAt = Number.NEGATIVE_INFINITY

  function find(text: string, now: number): Row | null | Promise<Row | null> {
    const isTrusted = trustsMemory()
    const row = isTrusted ? verified.get(text) : undefined
    return row ? goodRow(row, now) : verify(text, now, isTrusted)
  }

  function findRemembered(text: string, now: number): Row | null {
    const row = trustsMemory() ? verified.get(text) : undefined
    return row ? goodRow(row, now) : null
  }

  function trustsMemory(): boolean {
    return monotonicNow() - heardAt < TRUST_MS
  }

  async function verify(text: string, now: number, isTrusted: boolean): Promise<Row | null> {
    const presented = parse(text)
    if (!presented) return null
    const row = await lookUp(presented.id, isTrusted)
    if (!row || !sameHash(row.hash, presented.hash)) return null
    // Only a row that is still remembered is followed when the control tables change.
    if (known.peek(row.id) === row) verified.set(text, row)
    return goodRow(row, now)
  }

  function goodRow(row: Row, now: number): Row | null {
    if (!isGood(row, now)) return null
    uses.set(row.id, now)
    return row
  }

  function lookUp(id: string, isTrusted: boolean): Row | null | Promise<Row | null> {
    if (!isTrusted) return loadOnce(id)
    const row = known.get(id)
    if (row) return row
    return unknown.has(id) ? null : loadOnce(id)
  }

  function loadOnce(id: string): Promise<Row | null> {
    const running = loading.get(id)
    if (running) return running
    // A look-up that began before the last change may be older than it: its answer is given but not kept.
    const round = loading
    const started = load(id)
      .then((row) => {
        if (round === loading) remember(id, row)
        return row
      })
      .finally(() => round.delete(id))
    round.set(id, started)
    return started
  }

  function remember(id: string, row: Row | null): void {
    if (row) known.set(id, row)
    else unknown.set(id, true)
  }

  return {
    find,
    findRemembered,
    observeRevision(newRevision, askedAt) {
      heardAt = Math.max(heardAt, askedAt)
      if (newRevision === revision) return
      revision = newRevision
      known.clear()
      unknown.clear()
      verified.clear()
      loading = new Map()
    },
    takeUses() {
      const taken = new Map(uses)
      uses.clear()
      return taken
    },
    size: () => known.size + unknown.size,
  }
}

function isGood(row: StoredCredential, now: number): boolean {
  return row.revokedAt === null && (row.expiresAt === null || now < row.expiresAt)
}
