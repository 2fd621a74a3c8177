/** A scope is the id of a workspace, or of the whole installation. */
import { lookup, read, write, type Sql } from '../engine/sql.ts'
import type { Role } from '@tacho/contract/web/route.ts'
import { ROLES } from '@tacho/contract/engine/words.ts'
import type {
  AuditEntry,
  MemberRow,
  NewIdentity,
  NewOperator,
  OperatorRow,
  PersonRoles,
  RoleChange,
} from '../../people/operators.ts'
import { mapPage, type Page, type PageById } from '../../engine/page.ts'
import type { TableName } from '../../engine/tables.ts'
import { auditControl, lockControl } from '../engine/revision.ts'
import { textKey } from '../engine/keys.ts'
import { insertRows, replacing } from '../engine/rows.ts'
import { assertSum, takeSum, withSum } from '../engine/row-sums.ts'
import { uuidv7 } from '../../engine/uuid.ts'

export const operatorsActs = {
  ...lookup({ isMemberAt }),
  ...read({ listOperators, findOperator, listDeciders, findOperatorByEmail, findIdentity }),
  ...write({
    changeOperatorRole,
    deleteOperator,
    createOperator,
    verifyOperatorEmail,
    linkIdentity,
    claimIdentities,
  }),
}

/** Scope of the installation; no workspace has this id. */
export const INSTALLATION = 'installation'

export const scopeOf = (workspaceId: string | null): string => workspaceId ?? INSTALLATION

export const WORKSPACE_OF_SCOPE = `CASE WHEN scope = '${INSTALLATION}' THEN NULL ELSE scope END`

export const OPERATOR = `o.id, o.name, o.email, o.two_factor_enabled AS "twoFactor", o.created_at AS "createdAt"`
const MEMBER = `${OPERATOR}, ${withSum('operator_roles', 'r.')},
  CASE WHEN ${isDeactivated('o.id')} THEN 1 ELSE 0 END AS "deactivated",
  (SELECT max(s.created_at) FROM operator_sessions s WHERE s.operator_id = o.id) AS "lastSignInAt"`

/** SQL: whether a directory deactivated the account. */
export function isDeactivated(id: string): string {
  return `EXISTS (SELECT 1 FROM directory_people d WHERE d.operator_id = ${id} AND d.active = 0)`
}

/** The columns of the role are null for a person without one. */
type ReadMember = MemberRow & { scope: string | null; operatorId: string | null; handRole: Role | null }

/** A damaged role counts as no role. */
function toMember(sql: Sql, { scope, operatorId, handRole, ...row }: ReadMember): MemberRow {
  const isIntact = scope === null || takeSum(sql, 'operator_roles', { ...row, scope, operatorId, handRole }, scope)
  delete (row as { rowSum?: number | null }).rowSum
  const fromGroups = isIntact ? (row.fromGroups ?? 0) : 0
  return isIntact ? { ...row, fromGroups } : { ...row, role: null, fromGroups, damaged: true }
}

async function listOperators(
  sql: Sql,
  workspaceId: string | null,
  { limit, after }: PageById,
): Promise<Page<MemberRow>> {
  const text = `SELECT ${MEMBER} FROM ${membersOf(workspaceId)} WHERE o.id > :after ORDER BY o.id`
  const page = await sql.page<ReadMember>(text, { scope: scopeOf(workspaceId), after: after ?? '' }, limit)
  return mapPage(page, (row) => toMember(sql, row))
}

export async function findOperator(sql: Sql, workspaceId: string | null, id: string): Promise<MemberRow | null> {
  const text = `SELECT ${MEMBER} FROM ${membersOf(workspaceId)} WHERE o.id = :id`
  const row = await sql.get<ReadMember>(text, { scope: scopeOf(workspaceId), id })
  return row && toMember(sql, row)
}

/** Each role includes the roles before it. */
export const DECIDING = ROLES.slice(ROLES.indexOf('approver'))
  .map((role) => `'${role}'`)
  .join(', ')

function listDeciders(sql: Sql, workspaceId: string, limit: number): Promise<Page<Pick<OperatorRow, 'id' | 'email'>>> {
  const text = `SELECT o.id, o.email FROM operators o WHERE o.id IN (SELECT r.operator_id FROM operator_roles r
      WHERE r.scope IN (:workspaceId, '${INSTALLATION}') AND r.role IN (${DECIDING}))
      AND NOT ${isDeactivated('o.id')}
    ORDER BY o.created_at, o.id`
  return sql.page(text, { workspaceId }, limit)
}

async function isMemberAt(sql: Sql, environmentId: string, email: string): Promise<boolean> {
  const text = `SELECT 1 AS found FROM operators o JOIN operator_roles r ON r.operator_id = o.id
    WHERE o.email = :email AND r.scope IN ('${INSTALLATION}', (SELECT e.workspace_id FROM environments e WHERE e.id = :env))
      AND NOT ${isDeactivated('o.id')}`
  return (await sql.get<object>(text, { email, env: environmentId })) !== null
}

/** The installation lists all people, with or without a role for it. */
function membersOf(workspaceId: string | null): string {
  const join = workspaceId === null ? 'LEFT JOIN' : 'JOIN'
  return `operators o ${join} operator_roles r ON r.operator_id = o.id AND r.scope = :scope`
}

function findOperatorByEmail(sql: Sql, email: string): Promise<(OperatorRow & { emailVerified: number }) | null> {
  const text = `SELECT ${OPERATOR}, o.email_verified AS "emailVerified" FROM operators o WHERE o.email = :email`
  return sql.get(text, { email })
}

/**
 * Ends no session: each request reads the role again, from a cache that follows the control revision
 * (credential-cache.ts).
 */
async function changeOperatorRole(
  sql: Sql,
  workspaceId: string | null,
  id: string,
  role: Role | null,
  now: number,
  audit: AuditEntry[],
): Promise<RoleChange> {
  // Two owners who demote each other at the same time must not both succeed.
  await lockControl(sql)
  const scope = scopeOf(workspaceId)
  const present = await findOperator(sql, workspaceId, id)
  if (present === null) return 'unknown'
  if (role !== null && present.deactivated === 1) return 'deactivated'
  if (role !== 'owner' && (await isLastOwner(sql, scope, id))) return 'last_owner'
  if (role === null) {
    await sql.run('DELETE FROM operator_roles WHERE scope = :scope AND operator_id = :id', { scope, id })
  } else {
    await giveRole(sql, scope, id, role, now)
  }
  await auditControl(sql, audit)
  return 'changed'
}

async function deleteOperator(
  sql: Sql,
  id: string,
  now: number,
  audit: AuditEntry[],
): Promise<Exclude<RoleChange, 'deactivated'>> {
  await lockControl(sql)
  const scopes = await sql.all<{ scope: string }>('SELECT scope FROM operator_roles WHERE operator_id = :id', { id })
  for (const { scope } of scopes) if (await isLastOwner(sql, scope, id)) return 'last_owner'
  if (!(await deleteAccount(sql, id, now))) return 'unknown'
  await auditControl(sql, audit)
  return 'changed'
}

export async function deleteAccount(sql: Sql, id: string, now: number): Promise<boolean> {
  await deleteOf(sql, id, [...WAYS_IN, 'slack_links', 'notification_choices', 'quiet_hours'])
  await deleteOf(sql, id, ['operator_accounts', 'operator_roles', 'directory_members', 'directory_people'])
  const ended = await sql.get<{ email: string }>('DELETE FROM operators WHERE id = :id RETURNING email', { id })
  if (ended === null) return false
  await endInvitations(sql, id, ended.email, now)
  await insertRows(sql, 'ended_operators', [{ emailKey: textKey(ended.email), endedAt: now }], 'ON CONFLICT DO NOTHING')
  return true
}

/** Ends invitations to the address, and those that the person made. */
export async function endInvitations(sql: Sql, id: string, email: string, now: number): Promise<void> {
  const text = `UPDATE operator_invitations SET ended_at = :now
    WHERE ended_at IS NULL AND (email = :email OR inviter_kind = 'operator' AND inviter_id = :id)`
  await sql.run(text, { now, email, id })
}

/**
 * Creates a person who signs in through a trusted identity provider, without an invitation. Role null: only groups give
 * roles. `changed`: the address already has an account. `ended`: its account was ended, so only an invitation restores
 * it.
 */
async function createOperator(
  sql: Sql,
  operator: NewOperator,
  role: Role | null,
  audit: AuditEntry[],
): Promise<'created' | 'changed' | 'ended'> {
  await lockControl(sql)
  const ended = 'SELECT ended_at FROM ended_operators WHERE email_key = :key'
  if ((await sql.get(ended, { key: textKey(operator.email) })) !== null) return 'ended'
  if (!(await insertOperator(sql, operator))) return 'changed'
  if (role !== null) await giveRole(sql, INSTALLATION, operator.id, role, operator.createdAt)
  await auditControl(sql, audit)
  return 'created'
}

/** An unverified account loses its password, second factor and sessions, because anyone may have made it. */
async function verifyOperatorEmail(sql: Sql, id: string, now: number, audit: AuditEntry[]): Promise<void> {
  const verify = 'UPDATE operators SET email_verified = 1, updated_at = :now WHERE id = :id AND email_verified = 0'
  if ((await sql.run(verify, { now, id })) === 0) return
  await endPassword(sql, id, now)
  await auditControl(sql, audit)
}

/** Ends the password, its second factor, sessions, and sign-ins that wait for a code. */
export async function endPassword(sql: Sql, id: string, now: number): Promise<void> {
  await deleteOf(sql, id, WAYS_IN)
  await sql.run('DELETE FROM operator_accounts WHERE operator_id = :id AND password IS NOT NULL', { id })
  await sql.run('DELETE FROM sign_in_challenges WHERE value = :id', { id })
  await sql.run('UPDATE operators SET two_factor_enabled = 0, updated_at = :now WHERE id = :id', { now, id })
}

const OF_PROVIDER = "provider_id = 'oidc'"

/** @param accountId the issuer, a space, and the subject. */
function findIdentity(sql: Sql, accountId: string): Promise<Pick<OperatorRow, 'id' | 'email'> | null> {
  const text = `SELECT o.id, o.email FROM operator_accounts a JOIN operators o ON o.id = a.operator_id
    WHERE a.${OF_PROVIDER} AND a.account_id = :accountId`
  return sql.get(text, { accountId })
}

/** `taken`: the person has another identity of this issuer, which only an invitation replaces. */
async function linkIdentity(
  sql: Sql,
  { operatorId, issuer, accountId }: NewIdentity,
  { replaces, now }: { replaces: boolean; now: number },
  audit: AuditEntry[],
): Promise<'linked' | 'taken'> {
  await lockControl(sql)
  const ofIssuer = `operator_id = :operatorId AND ${OF_PROVIDER} AND substr(account_id, 1, length(:start)) = :start`
  const params = { operatorId, start: `${issuer} ` }
  const former = await sql.get(`SELECT id FROM operator_accounts WHERE ${ofIssuer}`, params)
  if (former !== null) {
    if (!replaces) return 'taken'
    await deleteOf(sql, operatorId, WAYS_IN)
    await sql.run(`DELETE FROM operator_accounts WHERE ${ofIssuer}`, params)
  }
  const row = { id: uuidv7(now), operatorId, providerId: 'oidc', accountId, createdAt: now, updatedAt: now }
  await insertRows(sql, 'operator_accounts', [row], 'ON CONFLICT DO NOTHING')
  await auditControl(sql, audit)
  return 'linked'
}

/**
 * Earlier versions stored only the subject. Those accounts get the issuer that is configured at the first start of this
 * version; without one, no configurable issuer gets them.
 */
async function claimIdentities(sql: Sql, issuer: string | null): Promise<number> {
  const text = `UPDATE operator_accounts SET account_id = :start || account_id
    WHERE ${OF_PROVIDER} AND account_id NOT LIKE '% %'
      AND :start || account_id NOT IN (SELECT a.account_id FROM operator_accounts a WHERE a.${OF_PROVIDER})`
  return sql.run(text, { start: `${issuer ?? 'none'} ` })
}

export async function insertOperator(sql: Sql, operator: NewOperator): Promise<boolean> {
  const { id, name, email, emailVerified, createdAt, password } = operator
  const times = { createdAt, updatedAt: createdAt }
  const row = { id, name, email, emailVerified, ...times }
  if ((await insertRows(sql, 'operators', [row], 'ON CONFLICT (email) DO NOTHING')) === 0) return false
  await sql.run('DELETE FROM ended_operators WHERE email_key = :key', { key: textKey(email) })
  if (password === null) return true
  // The library looks up a password under this provider, with the person's id as the account's.
  const account = { id: password.accountId, operatorId: id, providerId: 'credential', accountId: id, ...times }
  await insertRows(sql, 'operator_accounts', [{ ...account, password: password.hash }])
  return true
}

export const ROLE_REMEDY = 'Give it again, or restore a backup'

export async function rolesOf(sql: Sql, operatorId: string): Promise<PersonRoles> {
  const text = `SELECT ${withSum('operator_roles')}, ${WORKSPACE_OF_SCOPE} AS "workspaceId" FROM operator_roles
    WHERE operator_id = :operatorId ORDER BY scope`
  const roles = await sql.all<{ scope: string; workspaceId: string | null; role: Role }>(text, { operatorId })
  for (const row of roles) assertSum(sql, 'operator_roles', row, row.scope, ROLE_REMEDY)
  return {
    everywhere: roles.find(({ workspaceId }) => workspaceId === null)?.role ?? null,
    roles: roles.flatMap(({ workspaceId, role }) => (workspaceId === null ? [] : [{ workspaceId, role }])),
  }
}

export const ROLE_REPLACED = `ON CONFLICT (scope, operator_id) ${replacing(['role', 'from_groups', 'hand_role', 'row_sum'])}`

export async function giveRole(sql: Sql, scope: string, operatorId: string, role: Role, now: number): Promise<void> {
  const row = { scope, operatorId, role, fromGroups: 0, handRole: null, createdAt: now }
  await insertRows(sql, 'operator_roles', [row], ROLE_REPLACED)
}

/** Counts only owners who can act: neither deactivated people nor damaged roles. */
export async function isLastOwner(sql: Sql, scope: string, id: string): Promise<boolean> {
  const text = `SELECT ${withSum('operator_roles')} FROM operator_roles
    WHERE scope = :scope AND role = 'owner' AND NOT ${isDeactivated('operator_roles.operator_id')}`
  const rows = await sql.all<{ operatorId: string }>(text, { scope })
  const owners = rows.filter((row) => takeSum(sql, 'operator_roles', row, scope))
  return owners.length === 1 && owners[0]?.operatorId === id
}

export const WAYS_IN = ['operator_sessions', 'notified_browsers', 'operator_second_factors'] as const

export async function deleteOf(sql: Sql, id: string, tables: readonly TableName[]): Promise<void> {
  for (const table of tables) await sql.run(`DELETE FROM ${table} WHERE operator_id = :id`, { id })
}
