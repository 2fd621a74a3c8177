/**
 * A share: a version of a prompt that a part of the sessions gets. The others get the version in force.
 *
 *   none --deploy with a percentage--> running --another percentage, same salt--> running
 *                                         |
 *                                         +--0 percent, or any other version in force--> none
 */
import type { PromptShareRow, ShareOutcomes, VersionOutcomes } from '../../policies/deployments.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { takeSum, withSum } from '../engine/row-sums.ts'
import { insertRows } from '../engine/rows.ts'
import { read, type Sql } from '../engine/sql.ts'

export const sharesActs = read({ measureShares })

export interface RunningShare extends PromptShareRow {
  /** Size of the version's content. */
  bytes: number
}

/** Reads shares by prompt. */
export async function readShares(sql: Sql, environmentId: string): Promise<Map<string, RunningShare>> {
  const text = `SELECT ${withSum('prompt_shares', 's.')}, s.started_at AS "startedAt", s.started_by AS "startedBy",
      COALESCE(v.content_bytes, 0) AS bytes
    FROM prompt_shares s JOIN environments e ON e.id = s.environment_id
    LEFT JOIN prompt_versions v ON v.workspace_id = e.workspace_id AND v.prompt_id = s.prompt_id AND v.number = s.version
    WHERE s.environment_id = :env ORDER BY s.prompt_id`
  const rows = await sql.all<RunningShare>(text, { env: environmentId })
  const checked = rows.map((row) => {
    const isIntact = takeSum(sql, 'prompt_shares', row, environmentId)
    return isIntact ? row : { ...row, damaged: true as const }
  })
  return new Map(checked.map((row) => [row.promptId, row]))
}

export async function removeShare(sql: Sql, environmentId: string, promptId: string): Promise<void> {
  const text = 'DELETE FROM prompt_shares WHERE environment_id = :env AND prompt_id = :promptId'
  await sql.run(text, { env: environmentId, promptId })
}

export async function putShare(
  sql: Sql,
  environmentId: string,
  { promptId, version, percent, salt, startedAt, startedBy }: PromptShareRow,
): Promise<void> {
  await removeShare(sql, environmentId, promptId)
  await insertRows(sql, 'prompt_shares', [{ environmentId, promptId, version, percent, salt, startedAt, startedBy }])
}

/**
 * Outcomes of runs that started since each share began, for the share and for the version in force. `agentId` null:
 * every agent.
 */
async function measureShares(
  sql: Sql,
  environmentId: string,
  agentId: string | null,
  since: number,
): Promise<ShareOutcomes[]> {
  const text = `SELECT p.id AS "promptId", p.name, s.version, s.percent, s.started_at AS "startedAt", v.id AS "sharedId",
      d.version AS "inForce", f.id AS "inForceId"
    FROM prompt_shares s JOIN environments e ON e.id = s.environment_id
    JOIN prompts p ON p.workspace_id = e.workspace_id AND p.id = s.prompt_id
    JOIN prompt_versions v ON v.workspace_id = p.workspace_id AND v.prompt_id = p.id AND v.number = s.version
    JOIN deployments d ON d.environment_id = s.environment_id AND d.kind = 'prompt' AND d.item_id = p.id
    JOIN prompt_versions f ON f.workspace_id = p.workspace_id AND f.prompt_id = p.id AND f.number = d.version
    WHERE s.environment_id = :env ORDER BY p.name`
  type Row = Omit<ShareOutcomes, 'shared' | 'others'> & { startedAt: number; sharedId: string; inForceId: string }
  const rows = await sql.all<Row>(text, { env: environmentId })
  const measured: ShareOutcomes[] = []
  for (const { startedAt, sharedId, inForceId, ...share } of rows) {
    const from = Math.max(since, startedAt)
    const shared = await outcomesOf(sql, environmentId, sharedId, agentId, from)
    const others = await outcomesOf(sql, environmentId, inForceId, agentId, from)
    measured.push({ ...share, shared, others })
  }
  return measured
}

/** Outcomes of the share's newest runs. */
async function outcomesOf(
  sql: Sql,
  env: string,
  versionId: string,
  agentId: string | null,
  from: number,
): Promise<VersionOutcomes> {
  const count = (status: string) =>
    `CAST(COALESCE(SUM(CASE WHEN r.status = '${status}' THEN 1 ELSE 0 END), 0) AS BIGINT)`
  const text = `SELECT ${count('COMPLETED')} AS completed, ${count('FAILED')} AS failed, ${count('CANCELLED')} AS cancelled
    FROM (SELECT run FROM version_runs WHERE environment_id = :env AND prompt_version_id = :versionId
      ORDER BY run DESC LIMIT ${LIMITS.promptResultRuns}) newest
    JOIN runs r ON r.environment_id = :env AND r.id = newest.run
    WHERE r.started_at >= :from${agentId === null ? '' : ' AND r.agent_id = :agentId'}`
  const row = await sql.get<VersionOutcomes>(text, { env, versionId, from, ...(agentId !== null && { agentId }) })
  return row ?? { completed: 0, failed: 0, cancelled: 0 }
}
