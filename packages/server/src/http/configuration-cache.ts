/** Caches what clients request most: the revision of each environment, and the configuration texts. */
import { LRUCache } from 'lru-cache'
import type { Configuration } from '../storage/deployments.ts'
import type { Storage } from '../storage/storage.ts'
import { shareLoads } from './shared-loads.ts'

export interface ServedConfiguration {
  /**
   * Weak, because a compressing proxy removes strong tags: the bytes change. Without a tag, 304 would never be sent.
   */
  tag: string
  body: Buffer
}

export interface ConfigurationCache {
  /** The tag of the deployed configuration; free while cached. */
  tagOf(environmentId: string): string | Promise<string>
  /** The tag of the deployed configuration if cached; never asks the store. */
  rememberedTag(environmentId: string): string | null
  /** The complete deployed configuration. */
  read(environmentId: string): Promise<ServedConfiguration>
  published(environmentId: string): void
  /** Reports the control-table revision that the store returned when asked at `askedAt`, by the monotonic clock. */
  observeRevision(revision: number, askedAt: number): void
}

export interface ConfigurationCacheOptions {
  storage: Pick<Storage, 'readConfiguration'>
  /** Milliseconds of a monotonic clock. */
  monotonicNow?: () => number
  maxBytes?: number
}

interface Known {
  tag: string
  /** The round in which the entry was valid. */
  round: number
}

interface Text {
  revision: string
  body: Buffer
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
 * The text of an environment has the revision that was read with it. A round ends when the control tables change. Then
 * the cache asks for each environment's revision again, and for its text only if the revision is new. Environments never
 * share a text, not even of the same revision: what one tenant's store has is never served to another.
 */
export function createConfigurationCache({
  storage,
  monotonicNow = () => performance.now(),
  maxBytes = MAX_BYTES,
}: ConfigurationCacheOptions): ConfigurationCache {
  const known = new LRUCache<string, Known>({ max: MAX_ENVIRONMENTS })
  const texts = new LRUCache<string, Text>({
    max: MAX_ENVIRONMENTS,
    maxSize: maxBytes,
    sizeCalculation: ({ body }) => body.length,
  })
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
    const text = texts.get(environmentId)
    const read: Configuration = await storage.readConfiguration(environmentId, text?.revision ?? null)
    const body = read.text === null ? text?.body : Buffer.from(read.text)
    if (body === undefined) throw new Error('the store omitted a text that is not cached')
    return { revision: read.revision, tag: `W/"${read.revision}"`, body, round: startedIn }
  }

  function remember(environmentId: string, { body, revision, ...entry }: Loaded): void {
    known.set(environmentId, entry)
    texts.set(environmentId, { revision, body })
  }

  return {
    tagOf(environmentId) {
      return current(environmentId)?.tag ?? loads.load(environmentId).then(({ tag }) => tag)
    },
    rememberedTag: (environmentId) => current(environmentId)?.tag ?? null,
    async read(environmentId) {
      const entry = current(environmentId)
      const text = entry && texts.get(environmentId)
      return text ? { tag: entry.tag, body: text.body } : loads.load(environmentId)
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
