import type { AUDIT_FILTERS } from '@tacho/contract/people/audit-filters.ts'
import type { StoredFilter } from '@tacho/contract/web/filter.ts'
import type { Role } from '@tacho/contract/web/route.ts'
import type { Invitation, Operator } from '@tacho/contract/people/operator.ts'
import type { Session } from '@tacho/contract/people/sign-in.ts'
import type { OperatorToken } from '@tacho/contract/people/token.ts'
import type { RowFor } from '../engine/page.ts'
import { uuidv7 } from '../engine/uuid.ts'

export interface MemberRow extends Omit<RowFor<Operator>, 'twoFactor' | 'fromGroups' | 'deactivated'> {
  twoFactor: number
  deactivated: number
  fromGroups: number
}

export type OperatorRow = Omit<MemberRow, 'role' | 'fromGroups' | 'deactivated' | 'lastSignInAt'>

/** Address of an invitation whose person chooses the address: the first invitation of a store. */
export const ANY_EMAIL = ''

export interface InvitationRow extends RowFor<Invitation> {
  hash: string
  /**
   * Null: the service itself invites. The invitation ends with the inviter's credential, or with their right to give
   * the role.
   */
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
  /** Null: the person signs in through an identity provider. */
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

/** A role that a directory group gives. `workspace`: its name or id; null: every workspace. */
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

export interface OperatorTokenRow extends Omit<RowFor<OperatorToken>, 'createdBy'> {
  hash: string
  /** All null: the service created it, or a version that did not record the creator. */
  creatorKind: 'operator' | 'token' | null
  creatorId: string | null
  creatorName: string | null
}

/** Without `expiresAt`, the new token expires like the old one. */
export interface OperatorTokenRotation extends Pick<
  OperatorTokenRow,
  'id' | 'hash' | 'creatorKind' | 'creatorId' | 'creatorName'
> {
  now: number
  oldValidUntil: number
  expiresAt: number | null | undefined
}

export type MadeToken = Pick<OperatorTokenRow, 'id' | 'workspaceId' | 'name' | 'role' | 'revokedAt'>

export type SignInModel = 'user' | 'session' | 'account' | 'verification' | 'twoFactor'

/** Fields have the library's names; flags are 0 and 1, times are milliseconds. */
export type SignInRecord = Record<string, string | number | null>

export interface SignInCondition {
  field: string
  operator: 'eq' | 'ne' | 'lt' | 'lte' | 'gt' | 'gte' | 'in'
  value: string | number | null | readonly string[]
}

export interface SignInFind {
  where: SignInCondition[]
  limit: number
  newestFirst?: boolean
}

/** People and groups that a directory manages through SCIM. A person here is an operator with the same id. */

export interface DirectoryPersonRow {
  id: string
  userName: string
  externalId: string | null
  name: string
  email: string
  active: number
  createdAt: number
  updatedAt: number
}

export interface DirectoryGroupRow {
  id: string
  name: string
  externalId: string | null
  createdAt: number
  updatedAt: number
}

export interface DirectoryGroup extends DirectoryGroupRow {
  members: { id: string; name: string }[]
}

/** A whole resource. `active` undefined: unchanged; a new person is active. */
export type GivenPerson = Pick<DirectoryPersonRow, 'userName' | 'externalId' | 'name' | 'email'> & {
  active: boolean | undefined
}

/** Undefined members stay unchanged. `name` null: use the user name. */
export type PersonChange = Partial<Omit<GivenPerson, 'name'>> & { name?: string | null }

/** Undefined members stay unchanged. `members`: the exact list, before `add` and `remove`. */
export interface GroupChange {
  name?: string | undefined
  externalId?: string | null | undefined
  members?: string[] | undefined
  add: string[]
  remove: string[]
}

/** An equality; null: matches everything. */
export type DirectoryFilter<Field extends string> = { field: Field; value: string } | null
export interface DirectoryPage<Row> {
  total: number
  rows: Row[]
}

/** The roles of each group, from the settings. */
export type GroupRoleEntries = readonly (readonly [group: string, roles: readonly GrantedRole[]])[]

export interface AuditEntry {
  /** UUIDv7 of `at`; entries are ordered by it. */
  id: string
  /** Null for the whole installation. */
  workspaceId: string | null
  environmentId: string | null
  at: number
  actorKind: 'operator' | 'token' | 'alert'
  actorId: string
  actorName: string
  /** `<noun>.<verb>`, such as `policy.deploy`; a refused attempt ends in `.refused`. */
  action: string
  targetKind: string
  targetId: string
  detail: string
  requestId: string
  /** The caller's address by the proxy settings; null: the service itself, or an entry of an earlier version. */
  address: string | null
}

/** A new entry of the audit log. `detail` must have no secrets, payloads or comments. */
export function entryBy(
  actor: { kind: AuditEntry['actorKind']; id: string; name: string },
  scope: Pick<AuditEntry, 'at' | 'workspaceId' | 'environmentId'>,
  act: Pick<AuditEntry, 'action' | 'targetKind' | 'targetId'> & { detail: object },
  request: { id: string; ip?: string | null },
): AuditEntry {
  const { kind: actorKind, id: actorId, name: actorName } = actor
  const { at } = scope
  const detail = JSON.stringify(act.detail)
  const [requestId, address] = [request.id, request.ip ?? null]
  return { id: uuidv7(at), ...scope, actorKind, actorId, actorName, ...act, detail, requestId, address }
}

export type AuditFilter = StoredFilter<typeof AUDIT_FILTERS>
