/** What the addresses of the settings hold. */
import type { AuditQuery } from '@tacho/contract/people/audit.ts'
import type { DeliveryStatus } from '@tacho/contract/messages/webhook.ts'
import { DELIVERY_STATUSES } from '@tacho/contract/engine/words.ts'
import { textOf } from '../web/address.ts'

export type Scope = 'workspace' | 'everywhere'

interface ScopeSearch {
  scope?: 'everywhere'
}

export function readScopeSearch({ scope }: Record<string, unknown>): ScopeSearch {
  return scope === 'everywhere' ? { scope } : {}
}

/** The log goes back this many days. */
export const AUDIT_DAYS = { '1d': 1, '7d': 7, '30d': 30, '365d': 365 } as const
export type AuditSince = keyof typeof AUDIT_DAYS

export interface AuditSearch extends ScopeSearch, Pick<AuditQuery, 'action' | 'actorId' | 'targetKind' | 'targetId'> {
  since?: AuditSince
}

export function readAuditSearch(search: Record<string, unknown>): AuditSearch {
  const { since, ...texts } = textOf(search, ['action', 'actorId', 'targetKind', 'targetId', 'since'])
  return {
    ...readScopeSearch(search),
    ...texts,
    ...(since !== undefined && Object.hasOwn(AUDIT_DAYS, since) && { since: since as AuditSince }),
  }
}

interface DeliveriesSearch {
  status?: DeliveryStatus
}

export function readDeliveriesSearch({ status }: Record<string, unknown>): DeliveriesSearch {
  const known = DELIVERY_STATUSES.find((one) => one === status)
  return known ? { status: known } : {}
}
