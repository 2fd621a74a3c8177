/** API keys of an environment. Only the hash of a key is stored. */
import type { Scope } from '@tacho/contract/route.ts'
import type { AuditEntry } from './audit.ts'
import type { PageById } from './page.ts'

export interface ApiKeyStore {
  createApiKey(key: NewApiKeyRow, audit: AuditEntry[]): Promise<'created' | 'no_environment'>
  listApiKeys(environmentId: string, page: PageById): Promise<ApiKeyRow[]>
  /** A key of any environment, because the tenant is not yet known. Revoked if its environment is archived. */
  findApiKey(id: string): Promise<(ApiKeyRow & { workspaceId: string }) | null>
  /** `ended`: it is revoked, expired or replaced. `widened`: the scopes include one that it does not have. */
  changeApiKey(
    environmentId: string,
    id: string,
    change: ApiKeyChange,
    now: number,
    audit: AuditEntry[],
  ): Promise<ApiKeyRow | 'widened' | 'ended' | null>
  /** Creates a key in its place and limits how long it stays valid, in one transaction. Returns the new key. */
  rotateApiKey(
    environmentId: string,
    id: string,
    rotation: ApiKeyRotation,
    audit: AuditEntry[],
  ): Promise<ApiKeyRow | 'ended' | null>
  /** A second revocation keeps the first time and is not audited again. Null: no such key in that environment. */
  revokeApiKey(environmentId: string, id: string, now: number, audit: AuditEntry[]): Promise<ApiKeyRow | null>
}

export interface NewApiKeyRow {
  /** Public part of the key. */
  id: string
  environmentId: string
  name: string
  /** SHA-256 of the whole key text as presented, hex. */
  hash: string
  scopes: Scope[]
  requestsPerSecond: number | null
  createdAt: number
  expiresAt: number | null
  revokedAt: number | null
  lastUsedAt: number | null
}

export interface ApiKeyRow extends NewApiKeyRow {
  /** Id of the key that a rotation created in its place. */
  replacedBy: string | null
}

/** Absent fields stay. Scopes can only be removed. */
export type ApiKeyChange = {
  [Field in 'name' | 'scopes' | 'expiresAt' | 'requestsPerSecond']?: ApiKeyRow[Field] | undefined
}

export interface ApiKeyRotation {
  /** Id of the new key. It has the name, scopes and rate of the old one. */
  id: string
  hash: string
  now: number
  oldValidUntil: number
  /** Undefined: as the old key. */
  expiresAt: number | null | undefined
}
