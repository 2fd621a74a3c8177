/**
 *   in use --uses = most_uses--> used up
 *     |  `---expires_at--------> expired
 *     |  `---its run ends------> ended, with the run
 *     +--revoked, or a policy of it changes in its environment--> ended, with ended_at
 *
 * Only a grant in use approves. A use counts and approves in one transaction, which holds the environment's revision of
 * approvals: the number of uses is never exceeded, and a revocation that was answered stops each later use. A publication ends
 * grants itself, so that a rollback brings none back.
 */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type {
  GrantFault,
  GrantRow,
  GrantUse,
  InForce,
  NewGrant,
  ApprovalRow,
  DecisionRow,
  OtherTools,
} from '../../approvals/approvals.ts'
import type { AuditEntry } from '../../people/operators.ts'
import { mapPage, type Page, type PageById } from '../../engine/page.ts'
import { countOf, lookup, read, selectList, write, type Sql } from '../engine/sql.ts'
import { chunksOf, insertRows, withJson } from '../engine/rows.ts'
import { textKey } from '../engine/keys.ts'
import { insertAudit } from '../people/audit.ts'
import { announceApprovals } from '../messages/announcements.ts'
import { findStopOver } from '../policies/stops.ts'
import { COLUMNS as APPROVAL, findApproval, nextRevision } from './approval-rows.ts'
import { approversNeeded, mayStillGrant, rulesOf } from './two-people.ts'

export const grantsActs = {
  ...lookup({ countInForce }),
  ...read({ listGrants, findGrant, findGrantsFor, findGrantFault, listHeldApprovals }),
  ...write({ useGrant, revokeGrant, announceHeld }),
}

const OWN_COLUMNS =
  selectList(`id approval_id scope tool_name key_family run_id agent_id input_hash condition policies reason
  most_uses uses last_used_at created_at expires_at granter_kind granter_id granter_name ended_at ended_by`)
const parsed = withJson<GrantRow>('policies')
/** Null: its run continues, or is not known. A run that the stalled rule closed may continue. */
const RUN_ENDED = `(SELECT CASE WHEN r.rule_closed_at IS NULL THEN r.ended_at END FROM runs r
  WHERE r.environment_id = approval_grants.environment_id
    AND r.run_id >= approval_grants.run_id AND r.run_id <= approval_grants.run_id ORDER BY r.run_id LIMIT 1)`
const MAY_APPROVE = 'uses < most_uses AND expires_at > :now'
const IN_USE = `ended_at IS NULL AND ${MAY_APPROVE} AND ${RUN_ENDED} IS NULL`
const COLUMNS = `${OWN_COLUMNS}, ${RUN_ENDED} AS "runEndedAt"`
/** Beyond this number, the oldest are deleted: approvals keep the ids of the grants that made them. */
const KEPT = 1_000

async function listGrants(sql: Sql, environmentId: string, { limit, after }: PageById): Promise<Page<GrantRow>> {
  const further = after === null ? '' : ' AND id < :after'
  const text = `SELECT ${COLUMNS} FROM approval_grants WHERE environment_id = :env${further} ORDER BY id DESC`
  return mapPage(await sql.page<object>(text, { env: environmentId, after }, limit), parsed)
}

const COUNTED = 10_000

/**
 * For metrics, counts stops and unexpired grants of the whole installation, up to a number of rows. A grant whose run
 * has ended counts until it expires: runs are stored by environment, and checking would read all of them.
 */
async function countInForce(sql: Sql, now: number): Promise<InForce> {
  const firstRows = (table: string, open: string) =>
    `(SELECT * FROM ${table} WHERE ${open} LIMIT ${COUNTED}) AS counted`
  const stops = `SELECT COUNT(*) AS count FROM ${firstRows('stops', 'resumed_at IS NULL')}`
  const grants = `SELECT COUNT(*) AS grants, CAST(COALESCE(SUM(uses), 0) AS BIGINT) AS "grantUses"
    FROM ${firstRows('approval_grants', 'ended_at IS NULL AND expires_at > :now')} WHERE uses < most_uses`
  const counted = await sql.get<Omit<InForce, 'stops'>>(grants, { now })
  return { stops: await countOf(sql, stops, {}), grants: 0, grantUses: 0, ...counted }
}

async function findGrant(sql: Sql, environmentId: string, id: string): Promise<GrantRow | null> {
  const text = `SELECT ${COLUMNS} FROM approval_grants WHERE environment_id = :env AND id = :id`
  const row = await sql.get<object>(text, { env: environmentId, id })
  return row && parsed(row)
}

type Asking = Pick<ApprovalRow, 'environmentId' | 'toolName' | 'inputHash' | 'keyFamily' | 'runId' | 'agentId'>

/** Grants in use with the request's tool, key, and run or agent, the oldest first. */
export async function findGrantsFor(sql: Sql, asking: Asking, now: number): Promise<GrantRow[]> {
  const { environmentId, toolName, keyFamily, runId, agentId, inputHash } = asking
  const text = `SELECT ${COLUMNS} FROM approval_grants WHERE environment_id = :env AND tool_key = :toolKey AND ${IN_USE}
    ORDER BY id LIMIT ${LIMITS.grantsInUse}`
  const rows = await sql.all<object>(text, { env: environmentId, toolKey: textKey(toolName), now })
  return rows.map(parsed).filter((grant) => {
    if (grant.toolName !== toolName || grant.keyFamily !== keyFamily) return false
    if (grant.scope === 'condition') return grant.agentId === agentId
    return grant.runId === runId && (grant.scope === 'tool' || grant.inputHash === inputHash)
  })
}

/** The versions in force of the policies that asked, or the reason why a person may allow only this call. */
async function policiesOfGrant(
  sql: Sql,
  row: ApprovalRow,
  otherTools?: OtherTools,
): Promise<Record<string, number> | GrantFault> {
  const { environmentId, policyId, policyVersion } = row
  if ((row.approvers ?? (await approversNeeded(sql, environmentId, row, otherTools))) === 2) return 'two_people'
  const rules = await rulesOf(sql, environmentId, row)
  if (rules.some(({ severity, grants }) => (grants ?? (severity === 'CRITICAL' ? 'never' : 'allow')) === 'never'))
    return 'never'
  const asking = rules.filter(({ isInForce, action }) => isInForce && action === 'REQUIRE_APPROVAL')
  const policies = Object.fromEntries(asking.map((rule) => [rule.policyId, rule.number]))
  const isKnown = policyId !== null && Object.hasOwn(policies, policyId)
  if (!isKnown || (policyVersion !== null && policyVersion !== String(policies[policyId]))) return 'no_policy'
  return policies
}

/** The reason why this request cannot get a grant of the scope; null: it can. */
async function findGrantFault(sql: Sql, row: ApprovalRow, scope: GrantRow['scope']): Promise<GrantFault | null> {
  if (row.keyFamily === null || row.importedAt !== null) return 'no_key'
  if (scope === 'condition' ? row.agentId === null : row.runId === null)
    return scope === 'condition' ? 'no_agent' : 'no_run'
  const policies = await policiesOfGrant(sql, row)
  return typeof policies === 'string' ? policies : null
}

/** Runs in the transaction that approves the request. */
export async function createGrant(
  sql: Sql,
  row: ApprovalRow,
  { now, otherTools, ...decision }: DecisionRow,
  grant: NewGrant,
) {
  const { environmentId: env, toolName, keyFamily, inputHash } = row
  const fault = await findGrantFault(sql, row, grant.scope)
  if (fault !== null) return fault
  // Blocks publications until this transaction ends. A publication then ends the grant.
  await sql.run('UPDATE configurations SET publication = publication WHERE environment_id = :env', { env })
  const policies = await policiesOfGrant(sql, row, otherTools)
  if (typeof policies === 'string') return policies
  const inUse = `SELECT COUNT(*) AS count FROM approval_grants WHERE environment_id = :env AND ${IN_USE}`
  if ((await countOf(sql, inUse, { env, now })) >= LIMITS.grantsInUse) return 'too_many'
  const of = grant.scope === 'condition' ? { runId: null, agentId: row.agentId } : { runId: row.runId, agentId: null }
  const { deciderKind: granterKind, deciderId: granterId, deciderName: granterName, reason } = decision
  const by = { granterKind, granterId, granterName, reason, createdAt: now }
  const call = { approvalId: row.id, toolName, toolKey: textKey(toolName), keyFamily, ...of }
  const asked = { ...grant, inputHash: grant.scope === 'input' ? inputHash : null, policies: JSON.stringify(policies) }
  await insertRows(sql, 'approval_grants', [{ environmentId: env, ...call, ...asked, ...by, uses: 0 }])
  const excess = `DELETE FROM approval_grants WHERE environment_id = :env AND id IN (SELECT id FROM approval_grants
    WHERE environment_id = :env AND NOT (${IN_USE}) ORDER BY id DESC LIMIT 100 OFFSET ${KEPT})`
  await sql.run(excess, { env, now })
  return null
}

/** The approval, approved by the grant; null: the grant is no longer in use, or must not approve this request. */
async function useGrant(
  sql: Sql,
  environmentId: string,
  approvalId: string,
  { grantId, policyIds, inputEventId, now }: GrantUse,
  audit: AuditEntry[],
): Promise<ApprovalRow | null> {
  const revision = await nextRevision(sql, environmentId, null)
  const row = await findApproval(sql, environmentId, approvalId)
  const isOpen = row?.status === 'PENDING' && row.expiresAt > now && row.withdrawnAt === null && row.heldUntil !== null
  if (!row || !isOpen || row.inputEventId !== inputEventId) return null
  if ((await findStopOver(sql, environmentId, row)) !== null) return null
  const matching = (await findGrantsFor(sql, row, now)).find(({ id }) => id === grantId)
  const policies = matching && (await policiesOfGrant(sql, row))
  if (!matching || typeof policies !== 'object') return null
  if (!(await mayStillGrant(sql, environmentId, matching.granterKind, matching.granterId))) return null
  const ids = [...new Set([...policyIds, ...Object.keys(policies)])]
  if (!(await areInForce(sql, environmentId, ids, matching.policies))) return null
  const count = `UPDATE approval_grants SET uses = uses + 1, last_used_at = :now
    WHERE environment_id = :env AND id = :id AND ${IN_USE}`
  if ((await sql.run(count, { env: environmentId, id: grantId, now })) === 0) return null
  const { granterKind, granterId, granterName, reason } = matching
  const text = `UPDATE approvals SET status = 'APPROVED', revision = :revision, decided_at = :now, decision_reason = :reason,
      decider_kind = :granterKind, decider_id = :granterId, decider_name = :granterName, decided_via = 'grant',
      grant_id = :grantId, held_until = NULL
    WHERE environment_id = :env AND id = :id AND status = 'PENDING' RETURNING ${APPROVAL}`
  const by = { granterKind, granterId, granterName, reason, grantId }
  const approved = await sql.get<ApprovalRow>(text, { env: environmentId, id: approvalId, revision, now, ...by })
  await insertAudit(sql, audit)
  return approved
}

async function areInForce(
  sql: Sql,
  environmentId: string,
  ids: readonly string[],
  policies: GrantRow['policies'],
): Promise<boolean> {
  if (ids.some((id) => !Object.hasOwn(policies, id))) return false
  const text = `SELECT item_id AS id, version FROM deployments WHERE environment_id = :env AND kind = 'policy'
    AND item_id = :id`
  const rows = await Promise.all(
    Object.keys(policies).map((id) => sql.get<{ id: string; version: number }>(text, { env: environmentId, id })),
  )
  return rows.every((row) => row !== null && policies[row.id] === row.version)
}

async function revokeGrant(
  sql: Sql,
  environmentId: string,
  id: string,
  { now, by }: { now: number; by: string },
  audit: AuditEntry[],
): Promise<GrantRow | null> {
  // A concurrent use either commits before, or finds the grant revoked.
  await nextRevision(sql, environmentId, null)
  const text = `UPDATE approval_grants SET ended_at = :now, ended_by = :by
    WHERE environment_id = :env AND id = :id AND ended_at IS NULL`
  if ((await sql.run(text, { env: environmentId, id, now, by })) === 1) await insertAudit(sql, audit)
  return findGrant(sql, environmentId, id)
}

/** Runs in the transaction of a publication. */
export async function endGrantsOf(sql: Sql, environmentId: string, policyIds: readonly string[], now: number) {
  if (policyIds.length === 0) return
  const text = `SELECT ${COLUMNS} FROM approval_grants WHERE environment_id = :env AND ended_at IS NULL
    AND expires_at > :now ORDER BY id`
  const rows = (await sql.all<object>(text, { env: environmentId, now })).map(parsed)
  const ids = rows.flatMap(({ id, policies }) => (policyIds.some((one) => Object.hasOwn(policies, one)) ? [id] : []))
  const end = 'UPDATE approval_grants SET ended_at = :now WHERE environment_id = :env AND id IN (:ids)'
  for (const chunk of chunksOf(ids)) await sql.run(end, { env: environmentId, now, ids: chunk })
}

/** Requests that a grant may still approve, so people have not been notified of them. */
async function listHeldApprovals(sql: Sql, environmentId: string, now: number, limit: number): Promise<ApprovalRow[]> {
  const text = `SELECT ${APPROVAL} FROM approvals WHERE environment_id = :env AND status = 'PENDING'
    AND held_until <= :now ORDER BY expires_at, id LIMIT :limit`
  return sql.all(text, { env: environmentId, now, limit })
}

/** No grant approved these requests, so notify people. */
async function announceHeld(sql: Sql, environmentId: string, ids: string[], now: number): Promise<void> {
  const text = `UPDATE approvals SET held_until = NULL WHERE environment_id = :env AND id IN (:ids) AND status = 'PENDING'
    AND held_until IS NOT NULL RETURNING ${APPROVAL}`
  for (const chunk of chunksOf(ids)) {
    const rows = await sql.all<ApprovalRow>(text, { env: environmentId, ids: chunk })
    const news = rows.filter(({ withdrawnAt, expiresAt }) => withdrawnAt === null && expiresAt > now)
    await announceApprovals(sql, environmentId, 'approval.requested', news, now)
  }
}
