import { LRUCache } from 'lru-cache'
import type { Configuration } from '../../storage/policies/deployments.ts'
import type { Storage } from '../../storage/storage.ts'
import { shareLoads } from '../tenants/credential-cache.ts'
import type { WaitingKeys } from '../tenants/waiting-keys.ts'
import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { Shares } from '../../domain/tenants/shares.ts'
import type { Holder } from '../../storage/engine/turns-by-workspace.ts'

interface ServedConfiguration {
  /** A weak tag, because compressing proxies remove strong tags, and then 304 is never sent. */
  tag: string
  body: Buffer
}

export type ConfigurationCache = ReturnType<typeof createConfigurationCache>

interface ConfigurationCacheOptions {
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

/** A cached configuration is trusted this long, so every node serves a publication within a second. */
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

interface WaitsOptions {
  tagOf: (environmentId: string) => string | Promise<string>
  waitingKeys: Pick<WaitingKeys, 'watch'>
  onError: (error: unknown) => void
}

interface Wait {
  environmentId: string
  holder: Holder
  /** The tag of the configuration that the client has. */
  tag: string
  ms: number
  response: ServerResponse
}

/** Requests that are answered in one turn, so that others run in between. */
const WOKEN_AT_ONCE = 50
const READ_AT_ONCE = 20

/**
 * Requests that wait for another configuration than the one they have. Each takes a connection, a timer and an entry
 * here, and no other work until it ends:
 *
 *   waiting --another configuration
 * its key has ended
 * its time is over
 * its client is gone
 * drain--> ended, once
 *
 * A publication of this process wakes them at once. For a publication of another node, the poll of the control revision
 * makes this check every environment with waiting requests.
 */
function createConfigurationWaits({ tagOf, waitingKeys, onError }: WaitsOptions) {
  const { configurationWaits: most, configurationWaitsOfWorkspace: ofWorkspace } = LIMITS
  // Keys get the share of their workspace, because the clients of an environment often share a key.
  const shares = new Shares({ most, ofWorkspace, ofCredential: ofWorkspace })
  const environments = new Map<string, Map<() => void, string>>()
  let isClosed = false
  let looking: Promise<void> | null = null
  let lookAgain = false

  /** False: the request must be answered at once. `wake` is called once, in another turn. */
  function wait({ environmentId, holder, tag, ms, response }: Wait, wake: () => void): boolean {
    if (isClosed || !shares.take(holder, 1)) return false
    const waiting = environments.get(environmentId) ?? new Map<() => void, string>()
    environments.set(environmentId, waiting)
    const timer = setTimeout(end, ms)
    const unwatch = waitingKeys.watch(environmentId, holder.credential, end)
    response.once('close', end)
    waiting.set(end, tag)
    return true

    function end(): void {
      if (!waiting.delete(end)) return
      clearTimeout(timer)
      unwatch()
      response.off('close', end)
      shares.add(holder, -1)
      if (waiting.size === 0 && environments.get(environmentId) === waiting) environments.delete(environmentId)
      wake()
    }
  }

  async function wakeFor(environmentId: string, tag: string | null): Promise<void> {
    let woken = 0
    for (const [end, hadTag] of environments.get(environmentId) ?? []) {
      if (hadTag === tag) continue
      end()
      if (++woken % WOKEN_AT_ONCE === 0) await nextTurn()
    }
  }

  /** Checks once more if a change arrives during a check. */
  function lookForChanges(): void {
    lookAgain = true
    looking ??= lookAll().finally(() => (looking = null))
  }

  async function lookAll(): Promise<void> {
    while (lookAgain && !isClosed) {
      lookAgain = false
      const ids = [...environments.keys()]
      for (let at = 0; at < ids.length; at += READ_AT_ONCE) {
        await Promise.all(ids.slice(at, at + READ_AT_ONCE).map((id) => lookAt(id)))
      }
    }
  }

  async function lookAt(environmentId: string): Promise<void> {
    try {
      await wakeFor(environmentId, await tagOf(environmentId))
    } catch (error) {
      onError(error)
      // The configuration is damaged, or the store does not answer. The clients ask again when their wait ends.
    }
  }

  return {
    wait,
    lookForChanges,
    fits: (holder: Holder) => !isClosed && shares.fits(holder, 1),
    published: (environmentId: string) => void lookAt(environmentId),
    close(): void {
      isClosed = true
      for (const waiting of environments.values()) for (const end of waiting.keys()) end()
    },
    size: () => shares.used,
  }
}
