import type { Scope } from '@tacho/contract/route.ts'

export interface NewApiKeyRow {
  id: string
  environmentId: string
  name: string
  /** SHA-256 of the whole key text, hex. */
  hash: string
  scopes: Scope[]
  requestsPerSecond: number | null
  createdAt: number
  expiresAt: number | null
  revokedAt: number | null
  lastUsedAt: number | null
}

export interface ApiKeyRow extends NewApiKeyRow {
  replacedBy: string | null
}

/** Absent fields stay. Scopes can only be removed. */
export type ApiKeyChange = {
  [Field in 'name' | 'scopes' | 'expiresAt' | 'requestsPerSecond']?: ApiKeyRow[Field] | undefined
}

export interface ApiKeyRotation {
  id: string
  hash: string
  now: number
  oldValidUntil: number
  expiresAt: number | null | undefined
}
