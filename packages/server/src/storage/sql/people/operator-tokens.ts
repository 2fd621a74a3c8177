import { read, write, selectList, type Sql } from '../engine/sql.ts'
import type { AuditEntry, OperatorTokenRow } from '../../people/operators.ts'
import { mapPage, type PageById } from '../../engine/page.ts'
import { auditControl, growRevision, lockControl } from '../engine/revision.ts'
import { insertRows, withJson } from '../engine/rows.ts'
import { assertSum, takeSum, withSum } from '../engine/row-sums.ts'
import { rightToGive } from './invitations.ts'
import { DECIDING, INSTALLATION, scopeOf } from './operators.ts'

export const operatorTokensActs = {
  ...read({ listOperatorTokens, findOperatorToken, countDecidingTokens }),
  ...write({ createOperatorToken, revokeOperatorToken, revokeOtherOperatorTokens }),
}

const COLUMNS = `${withSum('operator_tokens')}, ${selectList(
  'name creator_kind creator_id creator_name created_at expires_at revoked_at last_used_at',
)}`
const REMEDY = 'Revoke it and create another one, or restore a backup'
const parsed = withJson<OperatorTokenRow>('allowedAddresses')

/** `forbidden`: whoever makes it has lost the role meanwhile. The lock makes it wait for one that ends their access. */
async function createOperatorToken(
  sql: Sql,
  token: OperatorTokenRow,
  audit: AuditEntry[],
): Promise<'created' | 'forbidden'> {
  await lockControl(sql)
  const { creatorKind: kind, creatorId: id, role, createdAt } = token
  const target = { scope: scopeOf(token.workspaceId), role }
  if (kind !== null && id !== null && (await rightToGive(sql, { kind, id }, target, createdAt)) === null)
    return 'forbidden'
  await insertRows(sql, 'operator_tokens', [token])
  await auditControl(sql, audit)
  return 'created'
}

/** Null: tokens for every workspace. */
async function listOperatorTokens(sql: Sql, workspaceId: string | null, { limit, after }: PageById) {
  const text = `SELECT ${COLUMNS} FROM operator_tokens WHERE ${inScope(workspaceId)} AND id > :after ORDER BY id`
  return mapPage(await sql.page<OperatorTokenRow>(text, { workspaceId, after: after ?? '' }, limit), (row) =>
    toRow(sql, row),
  )
}

/** A damaged token is listed, so that it can be revoked. */
function toRow(sql: Sql, row: OperatorTokenRow): OperatorTokenRow {
  const isIntact = takeSum(sql, 'operator_tokens', row, row.workspaceId ?? INSTALLATION)
  return isIntact ? parsed(row) : { ...row, allowedAddresses: [], damaged: true }
}

async function revokeOperatorToken(sql: Sql, workspaceId: string | null, id: string, now: number, audit: AuditEntry[]) {
  const one = `${inScope(workspaceId)} AND id = :id`
  const revoke = `UPDATE operator_tokens SET revoked_at = :now WHERE ${one} AND revoked_at IS NULL`
  if ((await sql.run(revoke, { now, workspaceId, id })) === 1) {
    await auditControl(sql, audit)
  }
  const row = await sql.get<OperatorTokenRow>(`SELECT ${COLUMNS} FROM operator_tokens WHERE ${one}`, {
    workspaceId,
    id,
  })
  return row && toRow(sql, row)
}

function inScope(workspaceId: string | null): string {
  return workspaceId === null ? 'workspace_id IS NULL' : 'workspace_id = :workspaceId'
}

async function revokeOtherOperatorTokens(sql: Sql, keptId: string, now: number): Promise<number> {
  const text = 'UPDATE operator_tokens SET revoked_at = :now WHERE id <> :keptId AND revoked_at IS NULL'
  const revoked = await sql.run(text, { now, keptId })
  if (revoked > 0) await growRevision(sql)
  return revoked
}

/** Those that can decide approvals of the workspace now. */
async function countDecidingTokens(sql: Sql, workspaceId: string, now: number): Promise<number> {
  const text = `SELECT count(*) AS tokens FROM operator_tokens WHERE (${inScope(null)} OR ${inScope(workspaceId)})
    AND role IN (${DECIDING}) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)`
  return (await sql.get<{ tokens: number }>(text, { workspaceId, now }))?.tokens ?? 0
}

async function findOperatorToken(sql: Sql, id: string): Promise<OperatorTokenRow | null> {
  const row = await sql.get<OperatorTokenRow>(`SELECT ${COLUMNS} FROM operator_tokens WHERE id = :id`, { id })
  if (row === null) return null
  assertSum(sql, 'operator_tokens', row, row.workspaceId ?? INSTALLATION, REMEDY)
  return parsed(row)
}
