/** Operator tokens: credentials of scripts for the operator API. Only the hash of a token is stored. */
import type { Role } from '@tacho/contract/operator/access.ts'
import type { AuditEntry } from './audit.ts'
import type { PageById } from './page.ts'

export interface OperatorTokenStore {
  createOperatorToken(token: OperatorTokenRow, audit: AuditEntry[]): Promise<void>
  /** Tokens of one workspace; null: tokens for every workspace. */
  listOperatorTokens(workspaceId: string | null, page: PageById): Promise<OperatorTokenRow[]>
  /**
   * For the tokens that listOperatorTokens returns. A second revocation keeps the first time and is not audited again.
   * Null: no such token there.
   */
  revokeOperatorToken(
    workspaceId: string | null,
    id: string,
    now: number,
    audit: AuditEntry[],
  ): Promise<OperatorTokenRow | null>
  /** Revokes every token but one. Returns how many were valid until now. */
  revokeOtherOperatorTokens(keptId: string, now: number): Promise<number>
  findOperatorToken(id: string): Promise<OperatorTokenRow | null>
}

export interface OperatorTokenRow {
  id: string
  name: string
  hash: string
  /** Null: valid in every workspace, with the role owner for the installation. */
  workspaceId: string | null
  role: Role
  createdAt: number
  expiresAt: number | null
  revokedAt: number | null
  lastUsedAt: number | null
}
