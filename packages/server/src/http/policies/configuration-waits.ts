/**
 * Requests that wait for another configuration than the one they have. Each holds a connection, a timer and an entry here, and costs
 * nothing until it ends:
 *
 *   waiting --another configuration | its key has ended | its time is over | its client is gone | drain--> ended, once
 *
 * A publication of this process wakes them at once. For one of another node, the poll of the control revision (configuration-cache.ts)
 * makes this look again at the environments that are waited for.
 */
import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { Shares } from '../../domain/tenants/shares.ts'
import type { WaitingKeys } from '../tenants/waiting-keys.ts'
import type { Holder } from '../../storage/engine/turns-by-workspace.ts'

export type ConfigurationWaits = ReturnType<typeof createConfigurationWaits>

interface WaitsOptions {
  tagOf: (environmentId: string) => string | Promise<string>
  waitingKeys: Pick<WaitingKeys, 'watch'>
  onError: (error: unknown) => void
}

export interface Wait {
  environmentId: string
  holder: Holder
  /** What the client has. */
  tag: string
  ms: number
  response: ServerResponse
}

/** Answering takes a turn of this many, so that others are answered in between. */
const WOKEN_AT_ONCE = 50
const READ_AT_ONCE = 20

export function createConfigurationWaits({ tagOf, waitingKeys, onError }: WaitsOptions) {
  const { configurationWaits: most, configurationWaitsOfWorkspace: ofWorkspace } = LIMITS
  // The clients of an environment often share a key.
  const shares = new Shares({ most, ofWorkspace, ofCredential: ofWorkspace })
  const environments = new Map<string, Map<() => void, string>>()
  let isClosed = false
  let looking: Promise<void> | null = null
  let lookAgain = false

  /** False: it must be answered at once. `wake` is called once, in another turn. */
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

  /** Runs again if a change comes while it looks. */
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
      // A damaged configuration, or a silent store: their clients ask again when their time is over.
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
