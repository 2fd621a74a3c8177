/**
 * A share: a version of a prompt that a part of the sessions gets. The others get the version in force.
 *
 *   none --deploy with a percentage--> running --another percentage, same salt--> running
 *                                         |
 *                                         +--0 percent, or any other version in force--> none
 */
import type { PromptShareRow } from '../../policies/deployments.ts'
import { takeSum, withSum } from '../engine/row-sums.ts'
import { insertRows } from '../engine/rows.ts'
import type { Sql } from '../engine/sql.ts'

export interface RunningShare extends PromptShareRow {
  /** Of its content. */
  bytes: number
}

/** By prompt. */
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
