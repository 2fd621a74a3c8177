/** The columns of approvals, and the lock that numbers their changes. */
import { lookup, read, selectList, type Sql } from '../engine/sql.ts'
import type { ApprovalRow, Requester } from '../../approvals/approvals.ts'
import { inChunks, columnsOfRow } from '../engine/rows.ts'
import { textKey } from '../engine/keys.ts'

export const approvalRowsActs = {
  ...lookup({ findApproval }),
  ...read({ findApprovals }),
}

export const COLUMNS = selectList(['environment_id', ...columnsOfRow('approvals')])

export function findApproval(sql: Sql, environmentId: string, id: string): Promise<ApprovalRow | null> {
  const text = `SELECT ${COLUMNS} FROM approvals WHERE environment_id = :env AND id = :id`
  return sql.get(text, { env: environmentId, id })
}

export function findApprovals(sql: Sql, environmentId: string, ids: string[]): Promise<ApprovalRow[]> {
  const text = `SELECT ${COLUMNS} FROM approvals WHERE environment_id = :env AND id IN (:ids)`
  return inChunks(ids, (chunk) => sql.all<ApprovalRow>(text, { env: environmentId, ids: chunk }))
}

export function agentKeyOf({ agentId, clientId }: Requester): string {
  return textKey(agentId === null ? `client:${clientId}` : `agent:${agentId}`)
}

/**
 * Every transaction that changes approvals of an environment locks the environment's revision first (`nextRevision`)
 * and holds it until it commits. So revisions are committed in their order on every node: a reader that has read
 * everything up to one revision never finds a smaller one later.
 */
export async function nextRevision(sql: Sql, environmentId: string, deadline: number | null): Promise<number> {
  const row = await sql.get<{ revision: number }>(
    `INSERT INTO approval_feeds (environment_id, revision, next_deadline) VALUES (:env, 1, :deadline)
      ON CONFLICT (environment_id) DO UPDATE SET revision = approval_feeds.revision + 1,
        next_deadline = CASE WHEN approval_feeds.next_deadline <= excluded.next_deadline
          THEN approval_feeds.next_deadline ELSE COALESCE(excluded.next_deadline, approval_feeds.next_deadline) END
      RETURNING revision`,
    { env: environmentId, deadline },
  )
  if (row === null) throw new Error('The upsert of a revision returned no row')
  return row.revision
}

export async function noteRemoval(sql: Sql, environmentId: string): Promise<void> {
  const revision = await nextRevision(sql, environmentId, null)
  const text = 'UPDATE approval_feeds SET removed_revision = :revision WHERE environment_id = :env'
  await sql.run(text, { revision, env: environmentId })
}
