/** API keys of an environment. Only the hash of a key is stored. */
import type { Scope } from '@tacho/contract/route.ts'
import type { AuditEntry } from './audit.ts'
import type { PageById } from './page.ts'

export interface ApiKeyStore {
  createApiKey(key: ApiKeyRow, audit: AuditEntry[]): Promise<'created' | 'no_environment'>
  listApiKeys(environmentId: string, page: PageById): Promise<ApiKeyRow[]>
  /** A key of any environment, because the tenant is not yet known. */
  findApiKey(id: string): Promise<(ApiKeyRow & { workspaceId: string }) | null>
  /** A second revocation keeps the first time and is not audited again. Null: no such key in that environment. */
  revokeApiKey(environmentId: string, id: string, now: number, audit: AuditEntry[]): Promise<ApiKeyRow | null>
}

export interface ApiKeyRow {
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
