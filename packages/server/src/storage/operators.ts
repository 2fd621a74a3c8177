/** People, their roles and invitations, and their sessions. A scope is a workspace, or null: the whole installation. */
import type { Role } from '@tacho/contract/operator/access.ts'
import type { AuditEntry } from './audit.ts'
import type { PageById } from './page.ts'

export interface OperatorRow {
  id: string
  name: string
  /** In lower case. */
  email: string
  /** 1: they need a second factor to sign in. */
  twoFactor: number
  createdAt: number
}

export interface MemberRow extends OperatorRow {
  /** Null only among all people of the installation: no role in every workspace. */
  role: Role | null
  /** When the newest session that still exists began. */
  lastSignInAt: number | null
}

export interface InvitationRow {
  id: string
  /** SHA-256 of the text in the link, hex. */
  hash: string
  email: string
  workspaceId: string | null
  role: Role
  /** Name of whoever invited. */
  invitedBy: string
  createdAt: number
  expiresAt: number
  /** When it was accepted, revoked or replaced. */
  endedAt: number | null
}

/** An invitation, and the person it is for where they have an account already. */
export interface FoundInvitation extends InvitationRow {
  operator: { id: string; name: string; passwordHash: string | null } | null
}

export interface NewOperator {
  id: string
  name: string
  email: string
  /** 1: an identity provider has vouched for the address. */
  emailVerified: number
  createdAt: number
  /** Null: they sign in at an identity provider. */
  password: { accountId: string; hash: string } | null
}

/** Whoever has a session, with all that decides what they may do. */
export interface SessionRow {
  /** SHA-256 of the token: what the session is looked up by. */
  id: string
  hash: string
  sessionId: string
  expiresAt: number
  revokedAt: null
  operator: OperatorRow
  everywhere: Role | null
  roles: { workspaceId: string; role: Role }[]
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

export interface OperatorStore {
  /** Those with a role in the scope; for null, everybody there is. */
  listOperators(workspaceId: string | null, page: PageById): Promise<MemberRow[]>
  findOperator(workspaceId: string | null, id: string): Promise<MemberRow | null>
  findOperatorByEmail(email: string): Promise<(OperatorRow & { emailVerified: number }) | null>
  /** Null takes the role away. No scope that has owners loses its last one. */
  changeOperatorRole(
    workspaceId: string | null,
    id: string,
    role: Role | null,
    now: number,
    audit: AuditEntry[],
  ): Promise<RoleChange>
  /** Ends an account: roles, ways in, sessions. No scope loses its last owner. */
  deleteOperator(id: string, audit: AuditEntry[]): Promise<RoleChange>
  /** Ends a pending invitation of the same person to the same scope. `member`: they have a role there already. */
  createInvitation(invitation: InvitationRow, audit: AuditEntry[]): Promise<'created' | 'member'>
  /** Pending ones, expired ones too. */
  listInvitations(workspaceId: string | null, page: PageById): Promise<InvitationRow[]>
  revokeInvitation(
    workspaceId: string | null,
    id: string,
    now: number,
    audit: AuditEntry[],
  ): Promise<InvitationRow | null>
  findInvitation(id: string): Promise<FoundInvitation | null>
  /** Those that are good at `now`, of an address. */
  findInvitationsFor(email: string, now: number): Promise<InvitationRow[]>
  /**
   * Gives the role once, and makes the person where `operator` is one. `gone`: the invitation is not good any more;
   * `changed`: the person has got an account, or lost it, since it was looked up.
   */
  acceptInvitation(
    id: string,
    operator: NewOperator | { id: string },
    now: number,
    audit: AuditEntry[],
  ): Promise<'accepted' | 'gone' | 'changed'>
  /** Without an invitation: somebody whose identity provider is trusted. `changed`: there is one of that address. */
  createOperator(operator: NewOperator, role: Role, audit: AuditEntry[]): Promise<'created' | 'changed'>
  /**
   * The address is vouched for from now on. Whoever made the account without that loses their ways in: a password, a
   * second factor and sessions. Nothing happens where it was vouched for already.
   */
  verifyOperatorEmail(id: string, now: number, audit: AuditEntry[]): Promise<void>
  findSession(tokenHash: string): Promise<SessionRow | null>
  listSessions(operatorId: string, now: number): Promise<SessionListRow[]>
  /** Ends one session of a person, or all but `exceptId`; returns how many. */
  endSessions(
    operatorId: string,
    which: { id: string } | { exceptId: string | null },
    audit: AuditEntry[],
  ): Promise<number>
  readPassword(operatorId: string): Promise<string | null>
  /** Ends all sessions but `keptSessionId`. */
  setPassword(operatorId: string, hash: string, now: number, keptSessionId: string, audit: AuditEntry[]): Promise<void>
  /** Notes that a code of the authenticator signed somebody in; false: it did already, within its time. */
  useCode(operatorId: string, code: string, now: number): Promise<boolean>
  /** Takes away a second factor whether confirmed or not. */
  removeSecondFactor(operatorId: string, now: number, audit: AuditEntry[]): Promise<void>
  /** Sessions and challenges that have expired: nobody asks for them any more. */
  deleteExpiredSignIns(now: number): Promise<number>
}
