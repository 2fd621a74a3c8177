import type { ApiKey } from '@tacho/contract/operator/api-key.ts'
import type { PatchOf, RowFor } from './row-for.ts'

export interface ApiKeyRow extends RowFor<ApiKey> {
  /** SHA-256 of the whole key text, hex. */
  hash: string
}

export type NewApiKeyRow = Omit<ApiKeyRow, 'replacedBy'>

export type ApiKeyChange = PatchOf<ApiKeyRow, 'name' | 'scopes' | 'expiresAt' | 'requestsPerSecond'>

export interface ApiKeyRotation {
  id: string
  hash: string
  now: number
  oldValidUntil: number
  expiresAt: number | null | undefined
}
