/** What clients ask for all the time, remembered: the revision of each environment, and the texts. */
import { LRUCache } from 'lru-cache'
import type { Configuration, DeploymentStore } from '../storage/deployments.ts'

export interface ServedConfiguration {
  /**
   * Weak: a proxy that compresses takes strong tags away, as the bytes are no longer the same, and then no 304 is ever
   * sent.
   */
  tag: string
  /** JSON in UTF-8. */
  body: Buffer
}

export interface ConfigurationCache {
  /** The tag of what is in force; costs nothing while it is remembered. */
  tagOf(environmentId: string): string | Promise<string>
  /** The tag of what is in force if it is remembered; never asks the store. */
  rememberedTag(environmentId: string): string | null
  /** What is in force, whole. */
  read(environmentId: string): Promise<ServedConfiguration>
  /** This node has published: what is remembered of the environment is out of date. */
  published(environmentId: string): void
  /** The revision of the control tables that the store told when asked at `askedAt`, by the monotonic clock. */
  observeRevision(revision: number, askedAt: number): void
}

export interface ConfigurationCacheOptions {
  storage: Pick<DeploymentStore, 'readConfiguration'>
  /** Milliseconds of a clock that never jumps. */
  monotonicNow?: () => number
  /** Bytes of texts that are kept; revisions are kept beside them. */
  maxBytes?: number
}

interface Known {
  revision: string
  tag: string
  /** The round in which it was true. */
  round: number
}

interface Loaded extends ServedConfiguration {
  revision: string
}

/** All nodes see a publication within a second: a node that has not heard from the store for that long asks it. */
const TRUST_MS = 1_000
const MAX_ENVIRONMENTS = 10_000
const MAX_BYTES = 32 * 1_048_576

/**
 * A revision is the digest of its text, so a text is never out of date: only which revision is in force can change. A
 * round ends when the control tables change; then each environment's revision is asked for once more, and its text only
 * if it is another one.
 */
export function createConfigurationCache({
  storage,
  monotonicNow = () => performance.now(),
  maxBytes = MAX_BYTES,
}: ConfigurationCacheOptions): ConfigurationCache {
  const known = new LRUCache<string, Known>({ max: MAX_ENVIRONMENTS })
  const texts = new LRUCache<string, Buffer>({ maxSize: maxBytes, sizeCalculation: ({ length }) => length })
  const loading = new Map<string, Promise<Loaded>>()
  let round = 0
  let controlRevision = Number.NaN
  let heardAt = Number.NEGATIVE_INFINITY

  function current(environmentId: string): Known | undefined {
    if (monotonicNow() - heardAt >= TRUST_MS) return undefined
    const entry = known.get(environmentId)
    return entry?.round === round ? entry : undefined
  }

  function load(environmentId: string): Promise<Loaded> {
    const running = loading.get(environmentId)
    if (running) return running
    const remembered = known.get(environmentId)
    const startedIn = round
    const started = readText(environmentId, remembered?.revision)
      .then((loaded) => {
        // A look-up that began before the last change may be older than it: its answer is given but not kept.
        if (loading.get(environmentId) === started) remember(environmentId, loaded, startedIn)
        return loaded
      })
      .finally(() => {
        if (loading.get(environmentId) === started) loading.delete(environmentId)
      })
    loading.set(environmentId, started)
    return started
  }

  async function readText(environmentId: string, revision: string | undefined): Promise<Loaded> {
    const text = revision === undefined ? undefined : texts.get(revision)
    const read: Configuration = await storage.readConfiguration(environmentId, text ? (revision ?? null) : null)
    const body = read.text === null ? text : Buffer.from(read.text)
    if (body === undefined) throw new Error('the store left out a text that is not known')
    return { revision: read.revision, tag: `W/"${read.revision}"`, body }
  }

  function remember(environmentId: string, { revision, tag, body }: Loaded, startedIn: number): void {
    known.set(environmentId, { revision, tag, round: startedIn })
    texts.set(revision, body)
  }

  return {
    tagOf(environmentId) {
      return current(environmentId)?.tag ?? load(environmentId).then(({ tag }) => tag)
    },
    rememberedTag: (environmentId) => current(environmentId)?.tag ?? null,
    async read(environmentId) {
      const entry = current(environmentId)
      const body = entry && texts.get(entry.revision)
      return body ? { tag: entry.tag, body } : load(environmentId)
    },
    published(environmentId) {
      loading.delete(environmentId)
      const entry = known.get(environmentId)
      if (entry) entry.round = -1
    },
    observeRevision(revision, askedAt) {
      heardAt = Math.max(heardAt, askedAt)
      if (revision === controlRevision) return
      controlRevision = revision
      round += 1
      loading.clear()
    },
  }
}
