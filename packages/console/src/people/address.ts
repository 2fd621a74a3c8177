/** Search parameters of the settings pages. */
import { AUDIT_FILTERS } from '@tacho/contract/people/audit-filters.ts'
import type { FilterAddress } from '@tacho/contract/web/filter.ts'
import type { DeliveryStatus } from '@tacho/contract/messages/webhook.ts'
import { DELIVERY_STATUSES } from '@tacho/contract/engine/words.ts'
import { readFilters, textOf } from '../web/address.ts'

export type Scope = 'workspace' | 'everywhere'

interface ScopeAddress {
  scope?: 'everywhere'
}

export function readScopeAddress({ scope }: Record<string, unknown>): ScopeAddress {
  return scope === 'everywhere' ? { scope } : {}
}

/** Periods of the audit log, in days. */
export const AUDIT_DAYS = { '1d': 1, '7d': 7, '30d': 30, '365d': 365 } as const
export type AuditSince = keyof typeof AUDIT_DAYS

export interface AuditAddress extends ScopeAddress, FilterAddress<typeof AUDIT_FILTERS> {
  since?: AuditSince
}

export function readAuditAddress(search: Record<string, unknown>): AuditAddress {
  const { since } = textOf(search, ['since'])
  return {
    ...readScopeAddress(search),
    ...readFilters(AUDIT_FILTERS, search),
    ...(since !== undefined && Object.hasOwn(AUDIT_DAYS, since) && { since: since as AuditSince }),
  }
}

interface DeliveriesAddress {
  status?: DeliveryStatus
}

export function readDeliveriesAddress({ status }: Record<string, unknown>): DeliveriesAddress {
  const known = DELIVERY_STATUSES.find((one) => one === status)
  return known ? { status: known } : {}
}
