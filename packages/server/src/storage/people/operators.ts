import type { Role } from '@tacho/contract/web/access.ts'
import type { Invitation, Operator } from '@tacho/contract/people/operator.ts'
import type { Session } from '@tacho/contract/people/sign-in.ts'
import type { RowFor } from '../engine/row-for.ts'

export interface MemberRow extends Omit<RowFor<Operator>, 'twoFactor' | 'fromGroups' | 'deactivated'> {
  twoFactor: number
  deactivated: number
  fromGroups: number
}

export type OperatorRow = Omit<MemberRow, 'role' | 'fromGroups' | 'deactivated' | 'lastSignInAt'>

/** An invitation for a person who names their own address: the first one of a store. */
export const ANY_EMAIL = ''

export interface InvitationRow extends RowFor<Invitation> {
  hash: string
  /** Null: the service itself. The invitation ends with the inviter's credential, or their right to give the role. */
  inviter: { kind: 'operator' | 'token'; id: string } | null
  endedAt: number | null
}

export interface FoundInvitation extends InvitationRow {
  createsAccount: boolean
  operator: { id: string; name: string; passwordHash: string | null } | null
}

export interface NewIdentity {
  operatorId: string
  issuer: string
  /** The issuer, a space, and the subject. */
  accountId: string
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

export interface SessionRow extends PersonRoles {
  /** SHA-256 of the token. Sessions are looked up by it. */
  id: string
  hash: string
  sessionId: string
  expiresAt: number
  revokedAt: null
  operator: OperatorRow
}

export interface SessionListRow extends Omit<RowFor<Session>, 'current' | 'address'> {
  ipAddress: string | null
}

/** By a group of a directory. `workspace`: its name or id; null: every workspace. */
export interface GrantedRole {
  workspace: string | null
  role: Role
}

export interface GroupRoleChange {
  workspaceId: string | null
  from: Role | null
  to: Role | null
}

export type RoleChange = 'changed' | 'unknown' | 'last_owner' | 'deactivated'
