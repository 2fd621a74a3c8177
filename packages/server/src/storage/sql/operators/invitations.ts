import { read, write, type Acts } from '../act.ts'
import type { AuditEntry } from '../../audit.ts'
import {
  ANY_EMAIL,
  type FoundInvitation,
  type InvitationRow,
  type NewOperator,
  type OperatorStore,
} from '../../operators.ts'
import type { PageById } from '../../page.ts'
import { insertAudit } from '../audit.ts'
import { giveRole, insertOperator, scopeOf, WORKSPACE_OF_SCOPE } from './operators.ts'
import { growRevision, lockControl } from '../revision.ts'
import type { Sql } from '../sql.ts'

export const invitationsActs = {
  createInvitation: write(createInvitation),
  listInvitations: read(listInvitations),
  revokeInvitation: write(revokeInvitation),
  findInvitation: read(findInvitation),
  findInvitationsFor: read(findInvitationsFor),
  acceptInvitation: write(acceptInvitation),
} satisfies Partial<Acts<OperatorStore>>

const COLUMNS = `id, hash, email, ${WORKSPACE_OF_SCOPE} AS "workspaceId", role, invited_by AS "invitedBy",
  created_at AS "createdAt", expires_at AS "expiresAt", ended_at AS "endedAt"`

async function createInvitation(
  sql: Sql,
  invitation: InvitationRow,
  audit: AuditEntry[],
): Promise<'created' | 'member'> {
  await lockControl(sql)
  const { email, workspaceId, createdAt } = invitation
  const scope = scopeOf(workspaceId)
  const member = `SELECT 1 FROM operators o JOIN operator_roles r ON r.operator_id = o.id
    WHERE o.email = ? AND r.scope = ?`
  if ((await sql.get(member, [email, scope])) !== null) return 'member'
  const end = 'UPDATE operator_invitations SET ended_at = ? WHERE email = ? AND scope = ? AND ended_at IS NULL'
  await sql.run(end, [createdAt, email, scope])
  await insertInvitation(sql, invitation)
  await insertAudit(sql, audit)
  return 'created'
}

export async function insertInvitation(sql: Sql, invitation: InvitationRow): Promise<void> {
  const { id, hash, email, workspaceId, role, invitedBy, createdAt, expiresAt, endedAt } = invitation
  const text = `INSERT INTO operator_invitations (id, hash, email, scope, role, invited_by, created_at, expires_at, ended_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
  await sql.run(text, [id, hash, email, scopeOf(workspaceId), role, invitedBy, createdAt, expiresAt, endedAt])
}

function listInvitations(sql: Sql, workspaceId: string | null, { limit, after }: PageById): Promise<InvitationRow[]> {
  const text = `SELECT ${COLUMNS} FROM operator_invitations
    WHERE scope = ? AND id > ? AND ended_at IS NULL ORDER BY id LIMIT ?`
  return sql.all(text, [scopeOf(workspaceId), after ?? '', limit])
}

async function revokeInvitation(
  sql: Sql,
  workspaceId: string | null,
  id: string,
  now: number,
  audit: AuditEntry[],
): Promise<InvitationRow | null> {
  const scope = scopeOf(workspaceId)
  const text = 'UPDATE operator_invitations SET ended_at = ? WHERE id = ? AND scope = ? AND ended_at IS NULL'
  if ((await sql.run(text, [now, id, scope])) === 0) return null
  await insertAudit(sql, audit)
  return sql.get(`SELECT ${COLUMNS} FROM operator_invitations WHERE id = ?`, [id])
}

async function findInvitation(sql: Sql, id: string): Promise<FoundInvitation | null> {
  const found = await sql.get<InvitationRow>(`SELECT ${COLUMNS} FROM operator_invitations WHERE id = ?`, [id])
  if (found === null) return null
  const text = `SELECT o.id, o.name, a.password AS "passwordHash" FROM operators o
    LEFT JOIN operator_accounts a ON a.operator_id = o.id AND a.provider_id = 'credential' WHERE o.email = ?`
  return { ...found, operator: await sql.get<NonNullable<FoundInvitation['operator']>>(text, [found.email]) }
}

function findInvitationsFor(sql: Sql, email: string, now: number): Promise<InvitationRow[]> {
  const text = `SELECT ${COLUMNS} FROM operator_invitations
    WHERE email = ? AND ended_at IS NULL AND expires_at > ? ORDER BY id LIMIT 1000`
  return sql.all(text, [email, now])
}

async function acceptInvitation(
  sql: Sql,
  id: string,
  operator: NewOperator | { id: string },
  now: number,
  audit: AuditEntry[],
): Promise<'accepted' | 'gone' | 'changed'> {
  await lockControl(sql)
  const found = await findInvitation(sql, id)
  if (found === null || found.endedAt !== null || found.expiresAt <= now) return 'gone'
  if ('email' in operator) {
    const isTheirs = found.email === ANY_EMAIL || operator.email === found.email
    if (!isTheirs || !(await insertOperator(sql, operator))) return 'changed'
  } else if (found.operator?.id !== operator.id) {
    return 'changed'
  }
  await sql.run('UPDATE operator_invitations SET ended_at = ? WHERE id = ?', [now, id])
  await giveRole(sql, scopeOf(found.workspaceId), operator.id, found.role, now)
  await insertAudit(sql, audit)
  await growRevision(sql)
  return 'accepted'
}
