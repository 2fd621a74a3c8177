import { read, write } from '../engine/act.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { AuditEntry } from '../../people/audit.ts'
import type { OperatorRow, SessionListRow, SessionRow } from '../../people/operators.ts'
import { insertAudit } from './audit.ts'
import { isDeactivated, OPERATOR, rolesOf } from './operators.ts'
import { textKey } from '../engine/keys.ts'
import { auditControl } from '../engine/revision.ts'
import { selectList, type Sql } from '../engine/sql.ts'

export const sessionsActs = {
  ...read({ findSession, listSessions, readPassword }),
  ...write({ endSessions, setPassword, useCode, removeSecondFactor, deleteExpiredSignIns }),
}

async function findSession(sql: Sql, tokenHash: string): Promise<SessionRow | null> {
  const text = `SELECT s.id AS "sessionId", s.expires_at AS "expiresAt", ${OPERATOR}
    FROM operator_sessions s JOIN operators o ON o.id = s.operator_id WHERE s.token_hash = :tokenHash
      AND NOT ${isDeactivated('o.id')}`
  const found = await sql.get<OperatorRow & Pick<SessionRow, 'sessionId' | 'expiresAt'>>(text, { tokenHash })
  if (found === null) return null
  const { sessionId, expiresAt, ...operator } = found
  const roles = await rolesOf(sql, operator.id)
  return { id: tokenHash, hash: tokenHash, sessionId, expiresAt, revokedAt: null, operator, ...roles }
}

function listSessions(sql: Sql, operatorId: string, now: number): Promise<SessionListRow[]> {
  const text = `SELECT ${selectList('id created_at expires_at last_used_at ip_address user_agent')}
    FROM operator_sessions WHERE operator_id = :operatorId AND expires_at > :now ORDER BY id DESC LIMIT 1000`
  return sql.all(text, { operatorId, now })
}

async function endSessions(
  sql: Sql,
  operatorId: string,
  which: { id: string } | { exceptId: string | null },
  audit: AuditEntry[],
): Promise<number> {
  const [is, id] = 'id' in which ? ['=', which.id] : ['<>', which.exceptId ?? '']
  const of = { operatorId, id }
  const ended = await sql.run(`DELETE FROM operator_sessions WHERE operator_id = :operatorId AND id ${is} :id`, of)
  await sql.run(`DELETE FROM notified_browsers WHERE operator_id = :operatorId AND session_id ${is} :id`, of)
  if (ended === 0) return 0
  await auditControl(sql, audit)
  return ended
}

async function readPassword(sql: Sql, operatorId: string): Promise<string | null> {
  const text = `SELECT password FROM operator_accounts WHERE operator_id = :operatorId AND provider_id = 'credential'`
  return (await sql.get<{ password: string | null }>(text, { operatorId }))?.password ?? null
}

async function setPassword(
  sql: Sql,
  operatorId: string,
  hash: string,
  now: number,
  keptSessionId: string,
  audit: AuditEntry[],
): Promise<void> {
  const text = `UPDATE operator_accounts SET password = :hash, updated_at = :now
    WHERE operator_id = :operatorId AND provider_id = 'credential'`
  await sql.run(text, { hash, now, operatorId })
  // Sign-ins that wait for their second factor began with a credential that may have ended.
  await sql.run('DELETE FROM sign_in_challenges WHERE value = :operatorId', { operatorId })
  await endSessions(sql, operatorId, { exceptId: keptSessionId }, [])
  await insertAudit(sql, audit)
}

/** Longer than any code is valid: from one interval early to one late. */
const CODE_MS = 2 * 60_000

/** Records that an authenticator code was used to sign in. False: it was already used within its validity. */
async function useCode(sql: Sql, operatorId: string, code: string, now: number): Promise<boolean> {
  const key = textKey(`${operatorId} ${code}`)
  await sql.run('DELETE FROM sign_in_challenges WHERE id = :key AND expires_at <= :now', { key, now })
  const text = `INSERT INTO sign_in_challenges (id, identifier, value, created_at, updated_at, expires_at)
    VALUES (:key, :key, 'used code', :now, :now, :until) ON CONFLICT (id) DO NOTHING`
  return (await sql.run(text, { key, now, until: now + CODE_MS })) === 1
}

async function removeSecondFactor(sql: Sql, operatorId: string, now: number, audit: AuditEntry[]): Promise<void> {
  await sql.run('DELETE FROM operator_second_factors WHERE operator_id = :operatorId', { operatorId })
  const text = 'UPDATE operators SET two_factor_enabled = 0, updated_at = :now WHERE id = :operatorId'
  await sql.run(text, { now, operatorId })
  await auditControl(sql, audit)
}

async function deleteExpiredSignIns(sql: Sql, now: number): Promise<number> {
  await sql.run('DELETE FROM slack_links WHERE code_expires_at <= :now', { now })
  const unused = now - LIMITS.notifiedBrowserMs
  await sql.run('DELETE FROM notified_browsers WHERE opened_at <= :unused', { unused })
  const sessions = await sql.run('DELETE FROM operator_sessions WHERE expires_at <= :now', { now })
  return sessions + (await sql.run('DELETE FROM sign_in_challenges WHERE expires_at <= :now', { now }))
}
