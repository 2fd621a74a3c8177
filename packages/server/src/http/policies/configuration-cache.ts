import { LRUCache } from 'lru-cache'
import type { Configuration } from '../../storage/policies/deployments.ts'
import type { Storage } from '../../storage/storage.ts'
import { createConfigurationWaits } from './configuration-waits.ts'
import { shareLoads } from '../tenants/credential-cache.ts'
import type { WaitingKeys } from '../tenants/waiting-keys.ts'

export interface ServedConfiguration {
  /** Weak, because compressing proxies remove strong tags, and then 304 is never sent. */
  tag: string
  body: Buffer
}

export type ConfigurationCache = ReturnType<typeof createConfigurationCache>

export interface ConfigurationCacheOptions {
  storage: Pick<Storage, 'readConfiguration'>
  waitingKeys?: Pick<WaitingKeys, 'watch'>
  monotonicNow?: () => number
  maxBytes?: number
  onError?: (error: unknown) => void
}

interface Known {
  tag: string
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

/** So all nodes see a publication within a second. */
const TRUST_MS = 1_000
const MAX_ENVIRONMENTS = 10_000
const MAX_BYTES = 32 * 1_048_576

/**
 * A round ends when the control tables change. Then revisions are read again, and texts only for new revisions.
 * Environments never share a text, even of the same revision: one tenant's content is never served to another.
 */
export function createConfigurationCache({
  storage,
  waitingKeys = { watch: () => () => undefined },
  monotonicNow = () => performance.now(),
  maxBytes = MAX_BYTES,
  onError = () => undefined,
}: ConfigurationCacheOptions) {
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

  function tagOf(environmentId: string): string | Promise<string> {
    return current(environmentId)?.tag ?? loads.load(environmentId).then(({ tag }) => tag)
  }

  const waits = createConfigurationWaits({ tagOf, waitingKeys, onError })

  return {
    tagOf,
    rememberedTag: (environmentId: string) => current(environmentId)?.tag ?? null,
    async read(environmentId: string): Promise<ServedConfiguration> {
      const entry = current(environmentId)
      const text = entry && texts.get(environmentId)
      return text ? { tag: entry.tag, body: text.body } : loads.load(environmentId)
    },
    published(environmentId: string): void {
      loads.forget(environmentId)
      const entry = known.get(environmentId)
      if (entry) entry.round = -1
      waits.published(environmentId)
    },
    observeRevision(revision: number, askedAt: number): void {
      observedAt = Math.max(observedAt, askedAt)
      if (revision === controlRevision) return
      controlRevision = revision
      round += 1
      loads.forgetAll()
      waits.lookForChanges()
    },
    waits,
  }
}
