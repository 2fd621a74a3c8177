import { read, write, selectList, type Sql } from '../engine/sql.ts'
import { includesRole } from '@tacho/contract/engine/words.ts'
import type { Role } from '@tacho/contract/web/route.ts'
import {
  type AuditEntry,
  ANY_EMAIL,
  type FoundInvitation,
  type InvitationRow,
  type NewOperator,
} from '../../people/operators.ts'
import { mapPage, type PageById } from '../../engine/page.ts'
import { insertAudit } from './audit.ts'
import { giveRole, insertOperator, INSTALLATION, isDeactivated, scopeOf, WORKSPACE_OF_SCOPE } from './operators.ts'
import { auditControl, lockControl } from '../engine/revision.ts'
import { insertRows } from '../engine/rows.ts'
import { takeSum, withSum } from '../engine/row-sums.ts'

export const invitationsActs = {
  ...read({ listInvitations, findInvitation, findInvitationsFor }),
  ...write({ createInvitation, revokeInvitation, acceptInvitation }),
}

const COLUMNS = `${WORKSPACE_OF_SCOPE} AS "workspaceId",
  ${selectList('id hash email role invited_by inviter_kind inviter_id created_at expires_at ended_at')}`

/**
 * Replaces a pending invitation of the same person to the same scope. `member`: the person already has a role there.
 */
async function createInvitation(
  sql: Sql,
  invitation: InvitationRow,
  audit: AuditEntry[],
): Promise<'created' | 'member'> {
  await lockControl(sql)
  const { email, workspaceId, createdAt } = invitation
  const scope = scopeOf(workspaceId)
  const member = `SELECT 1 FROM operators o JOIN operator_roles r ON r.operator_id = o.id
    WHERE o.email = :email AND r.scope = :scope`
  if ((await sql.get(member, { email, scope })) !== null) return 'member'
  const end = `UPDATE operator_invitations SET ended_at = :createdAt
    WHERE email = :email AND scope = :scope AND ended_at IS NULL`
  await sql.run(end, { createdAt, email, scope })
  await insertInvitation(sql, invitation)
  await insertAudit(sql, audit)
  return 'created'
}

export async function insertInvitation(sql: Sql, invitation: InvitationRow): Promise<void> {
  const { workspaceId, inviter, ...row } = invitation
  const by = { inviterKind: inviter?.kind, inviterId: inviter?.id }
  await insertRows(sql, 'operator_invitations', [{ ...row, scope: scopeOf(workspaceId), ...by }])
}

type Stored = Omit<InvitationRow, 'inviter'> & { inviterKind: 'operator' | 'token' | null; inviterId: string | null }

function toRow({ inviterKind: kind, inviterId: id, ...row }: Stored): InvitationRow {
  return { ...row, inviter: kind === null || id === null ? null : { kind, id } }
}

/** Null: the inviter can no longer give the role, neither in the scope of the invitation nor everywhere. */
async function standing(sql: Sql, { inviter, workspaceId, role }: InvitationRow, now: number) {
  return inviter === null
    ? { createsAccount: true }
    : rightToGive(sql, inviter, { scope: scopeOf(workspaceId), role }, now)
}

/** Null: the person or token no longer has the role or a higher one, neither in the scope nor everywhere. */
export async function rightToGive(
  sql: Sql,
  { kind, id }: NonNullable<InvitationRow['inviter']>,
  { scope, role }: { scope: string; role: Role },
  now: number,
): Promise<{ createsAccount: boolean } | null> {
  const text =
    kind === 'token'
      ? `SELECT COALESCE(workspace_id, '${INSTALLATION}') AS scope, ${withSum('operator_tokens')} FROM operator_tokens
          WHERE id = :id AND revoked_at IS NULL AND COALESCE(expires_at > :now, 1 = 1)`
      : `SELECT ${withSum('operator_roles')} FROM operator_roles WHERE scope IN (:scope, '${INSTALLATION}') AND operator_id = :id
          AND NOT ${isDeactivated('operator_roles.operator_id')}`
  const held = await sql.all<{ scope: string; role: Role }>(text, kind === 'token' ? { id, now } : { id, scope })
  const table = kind === 'token' ? 'operator_tokens' : 'operator_roles'
  const ofScope = held.filter((one) => one.scope === scope || one.scope === INSTALLATION)
  const valid = ofScope.filter((one) => takeSum(sql, table, one, one.scope))
  const isEnough = valid.some((one) => includesRole(one.role, role))
  return isEnough ? { createsAccount: valid.some((one) => one.scope === INSTALLATION) } : null
}

async function listInvitations(sql: Sql, workspaceId: string | null, { limit, after }: PageById) {
  const text = `SELECT ${COLUMNS} FROM operator_invitations
    WHERE scope = :scope AND id > :after AND ended_at IS NULL ORDER BY id`
  return mapPage(await sql.page<Stored>(text, { scope: scopeOf(workspaceId), after: after ?? '' }, limit), toRow)
}

async function revokeInvitation(sql: Sql, workspaceId: string | null, id: string, now: number, audit: AuditEntry[]) {
  const scope = scopeOf(workspaceId)
  const text = 'UPDATE operator_invitations SET ended_at = :now WHERE id = :id AND scope = :scope AND ended_at IS NULL'
  if ((await sql.run(text, { now, id, scope })) === 0) return null
  await insertAudit(sql, audit)
  const row = await sql.get<Stored>(`SELECT ${COLUMNS} FROM operator_invitations WHERE id = :id`, { id })
  return row && toRow(row)
}

async function findInvitation(sql: Sql, id: string, now: number): Promise<FoundInvitation | null> {
  const stored = await sql.get<Stored>(`SELECT ${COLUMNS} FROM operator_invitations WHERE id = :id`, { id })
  if (stored === null) return null
  const invitationRow = toRow(stored)
  const stands = await standing(sql, invitationRow, now)
  if (stands === null) return null
  const text = `SELECT o.id, o.name, a.password AS "passwordHash" FROM operators o
    LEFT JOIN operator_accounts a ON a.operator_id = o.id AND a.provider_id = 'credential' WHERE o.email = :email`
  const operator = await sql.get<NonNullable<FoundInvitation['operator']>>(text, { email: invitationRow.email })
  return { ...invitationRow, ...stands, operator }
}

async function findInvitationsFor(sql: Sql, email: string, now: number): Promise<InvitationRow[]> {
  const text = `SELECT ${COLUMNS} FROM operator_invitations
    WHERE email = :email AND ended_at IS NULL AND expires_at > :now ORDER BY id LIMIT 1000`
  const standingRows: InvitationRow[] = []
  for (const row of (await sql.all<Stored>(text, { email, now })).map(toRow)) {
    if ((await standing(sql, row, now)) !== null) standingRows.push(row)
  }
  return standingRows
}

/**
 * `gone`: the invitation has become invalid. `changed`: the account was created or deleted since the lookup. `member`:
 * the person already has a role there, which stays; the invitation ends.
 */
async function acceptInvitation(
  sql: Sql,
  id: string,
  operator: NewOperator | { id: string },
  now: number,
  audit: AuditEntry[],
): Promise<'accepted' | 'gone' | 'changed' | 'member'> {
  await lockControl(sql)
  const openInvitation = await findInvitation(sql, id, now)
  if (openInvitation === null || openInvitation.endedAt !== null || openInvitation.expiresAt <= now) return 'gone'
  if ('email' in operator) {
    const isTheirs = openInvitation.email === ANY_EMAIL || operator.email === openInvitation.email
    // Only an invitation that creates accounts may create one for an unverified address.
    if (!openInvitation.createsAccount && operator.emailVerified === 0) return 'gone'
    if (!isTheirs || !(await insertOperator(sql, operator))) return 'changed'
  } else if (openInvitation.operator?.id !== operator.id) {
    return 'changed'
  } else if (
    (await sql.get(`SELECT 1 FROM operators o WHERE o.id = :id AND ${isDeactivated('o.id')}`, operator)) !== null
  ) {
    return 'gone'
  }
  await sql.run('UPDATE operator_invitations SET ended_at = :now WHERE id = :id', { now, id })
  const scope = scopeOf(openInvitation.workspaceId)
  const has = 'SELECT role FROM operator_roles WHERE scope = :scope AND operator_id = :id'
  if ((await sql.get(has, { scope, id: operator.id })) !== null) return 'member'
  await giveRole(sql, scope, operator.id, openInvitation.role, now)
  await auditControl(sql, audit)
  return 'accepted'
}
