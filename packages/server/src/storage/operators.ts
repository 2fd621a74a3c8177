/** People, their roles, invitations and sessions. A scope is a workspace, or null: the whole installation. */
import type { Role } from '@tacho/contract/operator/access.ts'

export interface OperatorRow {
  id: string
  name: string
  email: string
  twoFactor: number
  createdAt: number
}

export interface MemberRow extends OperatorRow {
  /** Null only in the list of all people of the installation: no role in every workspace. */
  role: Role | null
  lastSignInAt: number | null
}

/** The address of an invitation for a person who names their own: the first one of a store. */
export const ANY_EMAIL = ''

export interface InvitationRow {
  id: string
  hash: string
  email: string
  workspaceId: string | null
  role: Role
  invitedBy: string
  /** Who invited; null: the service itself. The invitation ends with their credential, or with their right to give the role. */
  inviter: { kind: 'operator' | 'token'; id: string } | null
  createdAt: number
  expiresAt: number
  /** When it was accepted, revoked or replaced. */
  endedAt: number | null
}

export interface FoundInvitation extends InvitationRow {
  /** Whether accepting it may create an account: only if the inviter has a role in the whole installation. */
  createsAccount: boolean
  operator: { id: string; name: string; passwordHash: string | null } | null
}

export interface NewOperator {
  id: string
  name: string
  email: string
  emailVerified: number
  createdAt: number
  /** Null: signs in through an identity provider. */
  password: { accountId: string; hash: string } | null
}

export interface PersonRoles {
  everywhere: Role | null
  roles: { workspaceId: string; role: Role }[]
}

/** The person of a session, with everything that decides their permissions. */
export interface SessionRow extends PersonRoles {
  /** SHA-256 of the token. Sessions are looked up by it. */
  id: string
  hash: string
  sessionId: string
  expiresAt: number
  revokedAt: null
  operator: OperatorRow
}

export interface SessionListRow {
  id: string
  createdAt: number
  expiresAt: number
  lastUsedAt: number | null
  ipAddress: string | null
  userAgent: string | null
}

export type RoleChange = 'changed' | 'unknown' | 'last_owner'
