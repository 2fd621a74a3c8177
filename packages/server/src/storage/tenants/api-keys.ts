import type { ApiKey } from '@tacho/contract/tenants/api-key.ts'
import type { PatchOf, RowFor } from '../engine/row-for.ts'

export interface ApiKeyRow extends RowFor<ApiKey> {
  /** SHA-256 of the whole key text, hex. */
  hash: string
  /** Id of the first key of its chain of rotations; null: this one is the first. */
  family: string | null
}

export const keyFamilyOf = ({ family, id }: Pick<ApiKeyRow, 'family' | 'id'>): string => family ?? id

export type NewApiKeyRow = Omit<ApiKeyRow, 'replacedBy' | 'family' | keyof typeof NONE_LOST>

/** Of a key that is new. */
export const NONE_LOST = { lostRequests: 0, lastLostAt: null, lastLostReason: null }

/** Requests of a key that were refused since the last time, and why the latest was. */
export interface LostRequests {
  environmentId: string
  keyId: string
  requests: number
  at: number
  reason: string
}

/** The keys of the installation with such requests, and the one with the latest. */
export interface LostRequestsSum {
  keys: number
  requests: number
  latest: { keyName: string; workspaceName: string; environmentName: string; at: number; reason: string } | null
}

export type ApiKeyChange = PatchOf<
  ApiKeyRow,
  'name' | 'scopes' | 'expiresAt' | 'requestsPerSecond' | 'allowedAddresses'
>

export interface ApiKeyRotation {
  id: string
  hash: string
  now: number
  oldValidUntil: number
  expiresAt: number | null | undefined
}
