import type { ApiKey } from '@tacho/contract/operator/api-key.ts'
import type { PatchOf, RowFor } from './row-for.ts'

export interface ApiKeyRow extends RowFor<ApiKey> {
  /** SHA-256 of the whole key text, hex. */
  hash: string
  /** Id of the first key of its chain of rotations; null: this one is the first. */
  family: string | null
}

export const keyFamilyOf = ({ family, id }: Pick<ApiKeyRow, 'family' | 'id'>): string => family ?? id

export type NewApiKeyRow = Omit<ApiKeyRow, 'replacedBy' | 'family'>

export type ApiKeyChange = PatchOf<ApiKeyRow, 'name' | 'scopes' | 'expiresAt' | 'requestsPerSecond'>

export interface ApiKeyRotation {
  id: string
  hash: string
  now: number
  oldValidUntil: number
  expiresAt: number | null | undefined
}
