/**
 * Labels of the tools of an environment. They are served with its policies, and a change of them is no publication: deployments, versions
 * and their history stay as they are. `findToolLabels` is beside the configuration, which reads it (configurations.ts).
 */
import type { ToolLabel } from '@tacho/contract/policies/tool-labels.ts'
import type { AuditEntry } from '../../people/operators.ts'
import type { ToolLabelsRow } from '../../policies/deployments.ts'
import { insertAudit } from '../people/audit.ts'
import { growRevision } from '../engine/revision.ts'
import { insertRows, replacing } from '../engine/rows.ts'
import { lookup, write, type Sql } from '../engine/sql.ts'
import { findEnvironment } from '../tenants/workspaces.ts'
import { findToolLabels, keepConfiguration, lockConfiguration } from './configurations.ts'

export const toolLabelsActs = { ...lookup({ listToolNames }), ...write({ changeToolLabels }) }

/** Null: there is no such environment. Labels that are there already change nothing. */
async function changeToolLabels(
  sql: Sql,
  environmentId: string,
  { rules, changedAt, changedBy }: ToolLabelsRow,
  audit: AuditEntry[],
): Promise<ToolLabelsRow | null> {
  if ((await findEnvironment(sql, environmentId)) === null) return null
  const { publication } = await lockConfiguration(sql, environmentId)
  const stored = await findToolLabels(sql, environmentId)
  if (isSame(stored?.rules ?? [], rules)) return stored ?? { rules, changedAt, changedBy }
  const replaced = `ON CONFLICT (environment_id) ${replacing(['rules', 'changed_at', 'changed_by'])}`
  await insertRows(sql, 'tool_labels', [{ environmentId, rules, changedAt, changedBy }], replaced)
  await keepConfiguration(sql, environmentId, publication, 'stored')
  await insertAudit(sql, audit)
  await growRevision(sql)
  return { rules, changedAt, changedBy }
}

const isSame = (one: readonly ToolLabel[], other: readonly ToolLabel[]): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

/** Tools with calls since a time. Of erased runs nothing is counted, though the dictionary of names may have theirs. */
async function listToolNames(sql: Sql, environmentId: string, from: number): Promise<string[]> {
  const text = `SELECT t.tool FROM (
      SELECT tool_key FROM tool_hours WHERE environment_id = :env AND hour >= :from
      GROUP BY tool_key HAVING SUM(calls) + SUM(blocked) + SUM(approvals) > 0
    ) h JOIN tools t ON t.environment_id = :env AND t.tool_key = h.tool_key ORDER BY t.tool_key`
  return (await sql.all<{ tool: string }>(text, { env: environmentId, from })).map(({ tool }) => tool)
}
