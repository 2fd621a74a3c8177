/** Caches what clients request most: the revision of each environment, and the configuration texts. */
import { LRUCache } from 'lru-cache'
import type { Configuration, DeploymentStore } from '../storage/deployments.ts'
import { shareLoads } from './shared-loads.ts'

export interface ServedConfiguration {
  /**
   * Weak, because a compressing proxy removes strong tags: the bytes change. Without a tag, 304 would never be sent.
   */
  tag: string
  /** JSON in UTF-8. */
  body: Buffer
}

export interface ConfigurationCache {
  /** The tag of the deployed configuration; free while cached. */
  tagOf(environmentId: string): string | Promise<string>
  /** The tag of the deployed configuration if cached; never asks the store. */
  rememberedTag(environmentId: string): string | null
  /** The complete deployed configuration. */
  read(environmentId: string): Promise<ServedConfiguration>
  /** Call after this node publishes: the cached revision of the environment is stale. */
  published(environmentId: string): void
  /** Reports the control-table revision that the store returned when asked at `askedAt`, by the monotonic clock. */
  observeRevision(revision: number, askedAt: number): void
}

export interface ConfigurationCacheOptions {
  storage: Pick<DeploymentStore, 'readConfiguration'>
  /** Milliseconds of a monotonic clock. */
  monotonicNow?: () => number
  /** Maximum bytes of cached texts; revisions are cached separately. */
  maxBytes?: number
}

interface Known {
  revision: string
  tag: string
  /** The round in which the entry was valid. */
  round: number
}

interface Loaded extends ServedConfiguration {
  revision: string
  /** The round in which the read started. */
  round: number
}

/** All nodes see a publication within a second: after a second without news, a node asks the store. */
const TRUST_MS = 1_000
const MAX_ENVIRONMENTS = 10_000
const MAX_BYTES = 32 * 1_048_576

/**
 * A revision is the digest of its text, so a cached text never becomes stale. Only the deployed revision can change. A
 * round ends when the control tables change. Then the cache asks for each environment's revision again, and for its
 * text only if the revision is new.
 */
export function createConfigurationCache({
  storage,
  monotonicNow = () => performance.now(),
  maxBytes = MAX_BYTES,
}: ConfigurationCacheOptions): ConfigurationCache {
  const known = new LRUCache<string, Known>({ max: MAX_ENVIRONMENTS })
  const texts = new LRUCache<string, Buffer>({ maxSize: maxBytes, sizeCalculation: ({ length }) => length })
  const loads = shareLoads(readText, remember)
  let round = 0
  let controlRevision = Number.NaN
  let observedAt = Number.NEGATIVE_INFINITY

  function current(environmentId: string): Known | undefined {
    if (monotonicNow() - observedAt >= TRUST_MS) return undefined
    const entry = known.get(environmentId)
    return entry?.round === round ? entry : undefined
  }

  async function readText(environmentId: string): Promise<Loaded> {
    const startedIn = round
    const revision = known.get(environmentId)?.revision
    const text = revision === undefined ? undefined : texts.get(revision)
    const read: Configuration = await storage.readConfiguration(environmentId, text ? (revision ?? null) : null)
    const body = read.text === null ? text : Buffer.from(read.text)
    if (body === undefined) throw new Error('the store omitted a text that is not cached')
    return { revision: read.revision, tag: `W/"${read.revision}"`, body, round: startedIn }
  }

  function remember(environmentId: string, { body, ...entry }: Loaded): void {
    known.set(environmentId, entry)
    texts.set(entry.revision, body)
  }

  return {
    tagOf(environmentId) {
      return current(environmentId)?.tag ?? loads.load(environmentId).then(({ tag }) => tag)
    },
    rememberedTag: (environmentId) => current(environmentId)?.tag ?? null,
    async read(environmentId) {
      const entry = current(environmentId)
      const body = entry && texts.get(entry.revision)
      return body ? { tag: entry.tag, body } : loads.load(environmentId)
    },
    published(environmentId) {
      loads.forget(environmentId)
      const entry = known.get(environmentId)
      if (entry) entry.round = -1
    },
    observeRevision(revision, askedAt) {
      observedAt = Math.max(observedAt, askedAt)
      if (revision === controlRevision) return
      controlRevision = revision
      round += 1
      loads.forgetAll()
    },
  }
}
