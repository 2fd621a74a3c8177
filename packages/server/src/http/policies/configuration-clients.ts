import { LRUCache } from 'lru-cache'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { payloadIncludes, payloadText, type NewEvent, type Payload } from '../../storage/record/events.ts'
import { ENDED, type ConfigurationClientSeen } from '../../storage/policies/deployments.ts'

export interface Poll {
  environmentId: string
  keyId: string
  clientId: string
  /** ETag that the client had; empty: none. */
  had: string
  tag: string
  /** The client stops after this poll. */
  isClosing: boolean
}

export type ConfigurationClientsSeen = ReturnType<typeof createConfigurationClients>

export interface ConfigurationClientsOptions {
  now: () => number
  maxInAll?: number
}

interface Seen extends Poll {
  at: number
}

const MAX_IN_ALL = 10_000
/** How long after a change an environment's clients are written early. Longer than their refresh interval. */
const CHANGING_MS = 60_000
const CHANGING_AT_ONCE = 50
const REVISION = /^(?:W\/)?"([0-9a-f]{64})"$/

/**
 * A client counts as current only when it asks again after the change, which shows that it accepted the configuration.
 */
export function createConfigurationClients({ now, maxInAll = MAX_IN_ALL }: ConfigurationClientsOptions) {
  let environments = new Map<string, Map<string, Seen>>()
  /** For each environment, its tag and when this process first saw the tag. */
  const tags = new LRUCache<string, { tag: string; since: number }>({ max: maxInAll })
  let inAll = 0

  function drop(environmentId: string, clients: Map<string, Seen>): void {
    for (const oldest of clients.keys()) {
      clients.delete(oldest)
      inAll--
      if (clients.size === 0) environments.delete(environmentId)
      return
    }
  }

  function makeRoom(environmentId: string, clients: Map<string, Seen>): void {
    if (clients.size >= LIMITS.configurationClients) return drop(environmentId, clients)
    if (inAll < maxInAll) return
    for (const [first, others] of environments) return drop(first, others)
  }

  return {
    record(poll: Poll): void {
      const { environmentId, keyId, clientId } = poll
      // An id of a client starts with '=', so it never equals the id of a key.
      const id = clientId === '' || clientId.length > LIMITS.textChars ? keyId : `=${clientId}`
      if (tags.get(environmentId)?.tag !== poll.tag) tags.set(environmentId, { tag: poll.tag, since: now() })
      const clients = environments.get(environmentId) ?? new Map<string, Seen>()
      if (!clients.delete(id)) {
        makeRoom(environmentId, clients)
        inAll++
      }
      clients.set(id, { ...poll, at: now() })
      if (clients.size === 1) environments.set(environmentId, clients)
    },
    take(): ReadonlyMap<string, ConfigurationClientSeen[]> {
      const taken = environments
      environments = new Map()
      inAll = 0
      return seenIn(taken)
    },
    /**
     * Takes only clients of environments whose configuration changed lately, because an operator may be checking
     * whether they have it.
     */
    takeChanging(): ReadonlyMap<string, ConfigurationClientSeen[]> {
      const isChanging = ([id]: [string, unknown]) => (tags.get(id)?.since ?? -Infinity) > now() - CHANGING_MS
      const taken = [...environments].filter(isChanging).slice(0, CHANGING_AT_ONCE)
      for (const [id, clients] of taken) {
        environments.delete(id)
        inAll -= clients.size
      }
      return seenIn(taken)
    },
  }
}

function seenIn(environments: Iterable<[string, Map<string, Seen>]>) {
  return new Map(
    Array.from(environments, ([id, clients]) => [id, [...clients].map(([key, seen]) => toSeen(key, seen))] as const),
  )
}

function toSeen(id: string, { keyId, had, tag, isClosing, at }: Seen): ConfigurationClientSeen {
  const revision = isClosing ? ENDED : (REVISION.exec(had)?.[1] ?? REVISION.exec(tag)?.[1] ?? '')
  const place = id.startsWith('=')
    ? { identifiedBy: 'client' as const, clientId: id.slice(1) }
    : { identifiedBy: 'key' as const, clientId: id }
  return { ...place, keyId, revision, seenAt: at }
}

const AGE = '"policyAgeMs":'

/**
 * Clients that could not confirm their policies for long, and continue with cached ones. They report this with each
 * decision.
 */
export function judgingByOld(events: readonly Pick<NewEvent, 'eventType' | 'clientId' | 'payload'>[]) {
  const old = new Map<string, string>()
  for (const { eventType, clientId, payload } of events) {
    if (eventType !== 'POLICY_DECISION' || old.has(clientId) || !payloadIncludes(payload, AGE)) continue
    const { policyAgeMs, revision } = JSON.parse(payloadText(payload)) as Payload
    if (typeof policyAgeMs === 'number') old.set(clientId, `"${String(revision)}"`)
  }
  return old
}
