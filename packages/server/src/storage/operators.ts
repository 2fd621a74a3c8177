/** People, their roles, invitations and sessions. A scope is a workspace, or null: the whole installation. */
import type { Role } from '@tacho/contract/operator/access.ts'
import type { AuditEntry } from './audit.ts'
import type { PageById } from './page.ts'

export interface OperatorRow {
  id: string
  name: string
  /** Lower case. */
  email: string
  /** 1: sign-in requires a second factor. */
  twoFactor: number
  createdAt: number
}

export interface MemberRow extends OperatorRow {
  /** Null only in the list of all people of the installation: no role in every workspace. */
  role: Role | null
  /** Start of the newest existing session. */
  lastSignInAt: number | null
}

/** The address of an invitation for a person who names their own: the first one of a store. */
export const ANY_EMAIL = ''

export interface InvitationRow {
  id: string
  /** SHA-256 hex of the text in the link. */
  hash: string
  email: string
  workspaceId: string | null
  role: Role
  /** Name of the person who invited. */
  invitedBy: string
  /** Who invited; null: the service itself. The invitation ends with their credential, or with their right to give the role. */
  inviter: { kind: 'operator' | 'token'; id: string } | null
  createdAt: number
  expiresAt: number
  /** When it was accepted, revoked or replaced. */
  endedAt: number | null
}

/** An invitation, and the account of its addressee, if any. */
export interface FoundInvitation extends InvitationRow {
  /** Whether accepting it may create an account: only if the inviter has a role in the whole installation. */
  createsAccount: boolean
  operator: { id: string; name: string; passwordHash: string | null } | null
}

export interface NewOperator {
  id: string
  name: string
  email: string
  /** 1: an identity provider has verified the address. */
  emailVerified: number
  createdAt: number
  /** Null: signs in through an identity provider. */
  password: { accountId: string; hash: string } | null
}

/** The person of a session, with everything that decides their permissions. */
export interface SessionRow {
  /** SHA-256 of the token. Sessions are looked up by it. */
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
  /** People with a role in the scope; for null, all people. */
  listOperators(workspaceId: string | null, page: PageById): Promise<MemberRow[]>
  findOperator(workspaceId: string | null, id: string): Promise<MemberRow | null>
  findOperatorByEmail(email: string): Promise<(OperatorRow & { emailVerified: number }) | null>
  /** Null removes the role. A scope never loses its last owner. */
  changeOperatorRole(
    workspaceId: string | null,
    id: string,
    role: Role | null,
    now: number,
    audit: AuditEntry[],
  ): Promise<RoleChange>
  /** Deletes an account with its roles, credentials and sessions. A scope never loses its last owner. */
  deleteOperator(id: string, audit: AuditEntry[]): Promise<RoleChange>
  /**
   * Replaces a pending invitation of the same person to the same scope. `member`: the person already has a role there.
   */
  createInvitation(invitation: InvitationRow, audit: AuditEntry[]): Promise<'created' | 'member'>
  /** Pending invitations, including expired ones. */
  listInvitations(workspaceId: string | null, page: PageById): Promise<InvitationRow[]>
  revokeInvitation(
    workspaceId: string | null,
    id: string,
    now: number,
    audit: AuditEntry[],
  ): Promise<InvitationRow | null>
  /** Null too if the inviter can no longer give the role. */
  findInvitation(id: string, now: number): Promise<FoundInvitation | null>
  /** Invitations of an address that are valid at `now`. */
  findInvitationsFor(email: string, now: number): Promise<InvitationRow[]>
  /**
   * Grants the role once, and creates the person if `operator` is given. `gone`: the invitation has become invalid.
   * `changed`: the person's account was created or deleted since the lookup. `member`: the person has a role there, which stays;
   * the invitation ends.
   */
  acceptInvitation(
    id: string,
    operator: NewOperator | { id: string },
    now: number,
    audit: AuditEntry[],
  ): Promise<'accepted' | 'gone' | 'changed' | 'member'>
  /**
   * Creates a person without an invitation, through a trusted identity provider. `changed`: the address already has an
   * account.
   */
  createOperator(operator: NewOperator, role: Role, audit: AuditEntry[]): Promise<'created' | 'changed'>
  /**
   * Marks the address as verified. An account made before that loses its password, second factor and sessions, because
   * anyone may have made it. Does nothing if already verified.
   */
  verifyOperatorEmail(id: string, now: number, audit: AuditEntry[]): Promise<void>
  findSession(tokenHash: string): Promise<SessionRow | null>
  listSessions(operatorId: string, now: number): Promise<SessionListRow[]>
  /** Ends one session of a person, or all but `exceptId`. Returns how many. */
  endSessions(
    operatorId: string,
    which: { id: string } | { exceptId: string | null },
    audit: AuditEntry[],
  ): Promise<number>
  readPassword(operatorId: string): Promise<string | null>
  /** Ends all sessions but `keptSessionId`. */
  setPassword(operatorId: string, hash: string, now: number, keptSessionId: string, audit: AuditEntry[]): Promise<void>
  /** Records that an authenticator code was used to sign in. False: it was already used within its validity. */
  useCode(operatorId: string, code: string, now: number): Promise<boolean>
  /** Removes a second factor, confirmed or not. */
  removeSecondFactor(operatorId: string, now: number, audit: AuditEntry[]): Promise<void>
  /** Deletes expired sessions and challenges, which nothing else would remove. */
  deleteExpiredSignIns(now: number): Promise<number>
}
