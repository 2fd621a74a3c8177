/**
 * Long polls by API key. When a key ends, its polls end at once, on each node:
 *
 *   waiting --its key is revoked, or its environment archived--> over: `end` is called, and its caller answers 401
 *
 * When the control tables change, one statement for 50 keys checks the waiting keys, instead of one for each client.
 */
import type { Storage } from '../../storage/storage.ts'

export type WaitingKeys = ReturnType<typeof createWaitingKeys>

interface WaitingKeysOptions {
  storage: Pick<Storage, 'listValidApiKeys'>
  now: () => number
  onError: (error: unknown) => void
}

export function createWaitingKeys({ storage, now, onError }: WaitingKeysOptions) {
  const environments = new Map<string, Map<string, Set<() => void>>>()
  let revision = Number.NaN
  let lookAgain = false
  let isLooking = false

  /** `end` is called at most once. Call the result to stop watching. */
  function watch(environmentId: string, keyId: string, end: () => void): () => void {
    const keys = environments.get(environmentId) ?? new Map<string, Set<() => void>>()
    const ends = keys.get(keyId) ?? new Set()
    environments.set(environmentId, keys.set(keyId, ends.add(end)))
    return () => {
      ends.delete(end)
      if (ends.size === 0 && keys.get(keyId) === ends) keys.delete(keyId)
      if (keys.size === 0 && environments.get(environmentId) === keys) environments.delete(environmentId)
    }
  }

  async function lookAtKeys(): Promise<void> {
    lookAgain = true
    if (isLooking) return
    isLooking = true
    while (lookAgain) {
      lookAgain = false
      for (const [environmentId, keys] of environments) {
        try {
          const ids = [...keys.keys()]
          const valid = new Set(await storage.listValidApiKeys(environmentId, ids, now()))
          for (const id of ids.filter((asked) => !valid.has(asked))) for (const end of keys.get(id) ?? []) end()
        } catch (error) {
          onError(error)
          // These waits end when their time is over.
        }
      }
    }
    isLooking = false
  }

  return {
    watch,
    observeRevision(observed: number): void {
      if (observed === revision) return
      revision = observed
      if (environments.size > 0) void lookAtKeys()
    },
  }
}
