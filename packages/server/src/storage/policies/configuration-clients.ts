import type { PageAfter } from '../engine/page.ts'
import type { ClientStanding } from '@tacho/contract/policies/configuration-client.ts'

/** A client is BEHIND when it asks with another revision this long after the revision changed. */
export const TAKES_UP_MS = 2 * 60_000
/**
 * A client is SILENT when another client asked this much later: it missed several refreshes. Most of them are short processes that
 * ended, which must not count as late.
 */
export const SILENT_AFTER_MS = 3 * 60_000
/** A client is deleted this long after its last request, because many clients get a new id at each start. */
export const CLIENTS_KEPT_MS = 24 * 60 * 60_000
/** The revision of a client that said that it ends. Its row stays, so that an earlier poll at another node cannot bring it back. */
export const ENDED = 'ended'

interface ClientPlace {
  identifiedBy: 'client' | 'key'
  clientId: string
}

export interface ConfigurationClientSeen extends ClientPlace {
  keyId: string
  revision: string
  seenAt: number
}

export interface ConfigurationClientRow extends ConfigurationClientSeen {
  standing: ClientStanding
}

export type ConfigurationClientsPage = PageAfter<ClientPlace>
