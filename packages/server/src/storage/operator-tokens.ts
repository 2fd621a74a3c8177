import type { Role } from '@tacho/contract/operator/access.ts'

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
