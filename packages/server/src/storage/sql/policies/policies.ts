import { read, write, selectList, type Sql } from '../engine/sql.ts'
import type { AuditEntry } from '../../people/operators.ts'
import type {
  NewPolicyRow,
  NewPolicyVersionRow,
  PolicyRow,
  PolicyVersionRow,
  SavedVersion,
  VersionPage,
} from '../../policies/policies.ts'
import { mapPage, type PageById } from '../../engine/page.ts'
import { insertAudit } from '../people/audit.ts'
import { insertRows, columnsOfRow } from '../engine/rows.ts'
import { takeSum } from '../engine/row-sums.ts'
import { findWorkspace } from '../tenants/workspaces.ts'
import { deployedIn } from './deployments.ts'

export const policiesActs = {
  ...read({ listPolicies, findPolicy, listPolicyVersions, findPolicyVersion }),
  ...write({ createPolicy, createPolicyVersion, archivePolicy }),
}

const VERSION = `${selectList(columnsOfRow('policy_versions'), 'v.')}, v.row_sum AS "rowSum"`

const SELECT_POLICY = `SELECT p.workspace_id AS "workspaceId", p.created_at AS "policyCreatedAt",
  p.archived_at AS "archivedAt", ${VERSION}
  FROM policies p
  JOIN policy_versions v ON v.workspace_id = p.workspace_id AND v.policy_id = p.id AND v.number = p.newest`

type JoinedPolicy = PolicyVersionRow & { workspaceId: string; policyCreatedAt: number; archivedAt: number | null }

function toPolicy(sql: Sql, { workspaceId, policyCreatedAt, archivedAt, ...version }: JoinedPolicy): PolicyRow {
  const newest = toVersion(sql, workspaceId, version)
  return { id: newest.policyId, workspaceId, createdAt: policyCreatedAt, archivedAt, newest }
}

/** A damaged version is returned without its text. */
function toVersion(sql: Sql, workspaceId: string, version: PolicyVersionRow): PolicyVersionRow {
  if (takeSum(sql, 'policy_versions', version, workspaceId)) return version
  return { ...version, description: null, condition: '', template: null, damaged: true }
}

async function createPolicy(
  sql: Sql,
  { id, workspaceId, createdAt }: NewPolicyRow,
  first: NewPolicyVersionRow,
  audit: AuditEntry[],
): Promise<'created' | 'id_taken' | 'no_workspace'> {
  if ((await findWorkspace(sql, workspaceId)) === null) return 'no_workspace'
  const unlessTaken = 'ON CONFLICT (workspace_id, id) DO NOTHING'
  const policy = { workspaceId, id, createdAt, newest: 1 }
  if ((await insertRows(sql, 'policies', [policy], unlessTaken)) === 0) return 'id_taken'
  await insertRows(sql, 'policy_versions', [{ workspaceId, policyId: id, number: 1, ...first }])
  await insertAudit(sql, audit)
  return 'created'
}

function createPolicyVersion(
  sql: Sql,
  workspaceId: string,
  policyId: string,
  version: NewPolicyVersionRow,
  follows: number | null,
  audit: AuditEntry[],
): Promise<SavedVersion<PolicyVersionRow> | null> {
  return addVersion(sql, 'policies', { workspaceId, id: policyId, follows, audit }, findPolicy, {
    isSame: (newest) => CONTENT.every((field) => newest[field] === version[field]),
    async insert(number) {
      const saved: PolicyVersionRow = { policyId, number, importedAt: null, ...version }
      await insertRows(sql, 'policy_versions', [{ workspaceId, ...saved }])
      return saved
    },
  })
}

interface NewVersion<Version> {
  isSame(newest: Version): boolean
  insert(number: number): Promise<Version>
}

/** Adds a version to a policy or a prompt. Null: there is no such item. */
export async function addVersion<Version extends { number: number }>(
  sql: Sql,
  table: 'policies' | 'prompts',
  { audit, follows, ...place }: { workspaceId: string; id: string; follows: number | null; audit: AuditEntry[] },
  find: (sql: Sql, workspaceId: string, id: string) => Promise<{ newest: Version } | null>,
  { isSame, insert }: NewVersion<Version>,
): Promise<SavedVersion<Version> | null> {
  await lockVersions(sql, table, place)
  const item = await find(sql, place.workspaceId, place.id)
  if (item === null) return null
  const { newest } = item
  if (isSame(newest)) return { outcome: 'unchanged', version: newest }
  if (follows !== null && follows !== newest.number) return { outcome: 'conflict', version: newest }
  const version = await insert(newest.number + 1)
  const grow = `UPDATE ${table} SET newest = :number WHERE workspace_id = :workspaceId AND id = :id`
  await sql.run(grow, { number: version.number, ...place })
  await insertAudit(sql, audit)
  return { outcome: 'created', version }
}

/** Locks the row of a policy or a prompt: only the transaction that holds it numbers versions. */
function lockVersions(sql: Sql, table: 'policies' | 'prompts', place: { workspaceId: string; id: string }) {
  return sql.run(`UPDATE ${table} SET newest = newest WHERE workspace_id = :workspaceId AND id = :id`, place)
}

const CONTENT = [
  'name',
  'description',
  'condition',
  'severity',
  'action',
  'onError',
  'approvers',
  'grants',
  'template',
] as const

async function listPolicies(sql: Sql, workspaceId: string, { limit, after }: PageById, withArchived = false) {
  const used = withArchived ? '' : ' AND p.archived_at IS NULL'
  const text = `${SELECT_POLICY} WHERE p.workspace_id = :workspaceId AND p.id > :after${used} ORDER BY p.id`
  const page = await sql.page<JoinedPolicy>(text, { workspaceId, after: after ?? '' }, limit)
  return mapPage(page, (row) => toPolicy(sql, row))
}

async function findPolicy(sql: Sql, workspaceId: string, policyId: string): Promise<PolicyRow | null> {
  const text = `${SELECT_POLICY} WHERE p.workspace_id = :workspaceId AND p.id = :policyId`
  const row = await sql.get<JoinedPolicy>(text, { workspaceId, policyId })
  return row && toPolicy(sql, row)
}

async function listPolicyVersions(sql: Sql, workspaceId: string, policyId: string, { limit, after }: VersionPage) {
  const earlier = after === null ? '' : ' AND v.number < :after'
  const text = `SELECT ${VERSION} FROM policy_versions v WHERE v.workspace_id = :workspaceId
    AND v.policy_id = :policyId${earlier} ORDER BY v.number DESC`
  const page = await sql.page<PolicyVersionRow>(text, { workspaceId, policyId, after }, limit)
  return mapPage(page, (row) => toVersion(sql, workspaceId, row))
}

async function findPolicyVersion(sql: Sql, workspaceId: string, policyId: string, number: number) {
  const text = `SELECT ${VERSION} FROM policy_versions v
    WHERE v.workspace_id = :workspaceId AND v.policy_id = :policyId AND v.number = :number`
  const row = await sql.get<PolicyVersionRow>(text, { workspaceId, policyId, number })
  return row && toVersion(sql, workspaceId, row)
}

async function archivePolicy(
  sql: Sql,
  workspaceId: string,
  policyId: string,
  archivedAt: number | null,
  audit: AuditEntry[],
): Promise<PolicyRow | { deployedIn: string } | null> {
  await lockVersions(sql, 'policies', { workspaceId, id: policyId })
  const policy = await findPolicy(sql, workspaceId, policyId)
  if (policy === null || (archivedAt === null) === (policy.archivedAt === null)) return policy
  const deployed = archivedAt === null ? null : await deployedIn(sql, workspaceId, 'policy', policyId)
  if (deployed !== null) return deployed
  const text = 'UPDATE policies SET archived_at = :archivedAt WHERE workspace_id = :workspaceId AND id = :policyId'
  await sql.run(text, { archivedAt, workspaceId, policyId })
  await insertAudit(sql, audit)
  return { ...policy, archivedAt }
}
