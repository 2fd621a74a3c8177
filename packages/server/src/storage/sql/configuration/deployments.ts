import { mapPage, type Page } from '../../page.ts'
import { read } from '../act.ts'
import type {
  DeploymentChangePage,
  DeploymentChangeRow,
  DeploymentFilter,
  DeploymentPage,
  DeploymentRow,
} from '../../deployments.ts'
import type { Sql, SqlValue } from '../sql.ts'
import { keyOf, readEarlier } from './targets.ts'

export const deploymentsActs = {
  listDeployments: read(listDeployments),
  listDeploymentChanges: read(listDeploymentChanges),
}

const NAME = `COALESCE(p.name, d.item_id) AS name`
const NAMED = `JOIN environments e ON e.id = d.environment_id
    LEFT JOIN prompts p ON d.kind = 'prompt' AND p.workspace_id = e.workspace_id AND p.id = d.item_id`

async function listDeployments(
  sql: Sql,
  environmentId: string,
  { limit, after }: DeploymentPage,
): Promise<Page<DeploymentRow>> {
  const further = after ? ' AND (d.kind, d.item_id) > (?, ?)' : ''
  const text = `SELECT d.kind, d.item_id AS id, ${NAME}, d.version, d.publication, d.deployed_at AS "deployedAt",
    d.deployed_by AS "deployedBy", d.imported_at AS "importedAt"
    FROM deployments d ${NAMED} WHERE d.environment_id = ?${further} ORDER BY d.kind, d.item_id`
  const params = [environmentId, ...(after ? [after.kind, after.id] : [])]
  const page = await sql.page<Omit<DeploymentRow, 'earlierVersion'>>(text, params, limit)
  const earlier = await readEarlier(sql, environmentId, page.rows)
  return mapPage(page, (row) => ({ ...row, earlierVersion: earlier.get(keyOf(row))?.version ?? null }))
}

/** Newest publication first; its changes by kind and id. */
function listDeploymentChanges(
  sql: Sql,
  environmentId: string,
  { kind, id }: DeploymentFilter,
  { limit, after }: DeploymentChangePage,
): Promise<Page<DeploymentChangeRow>> {
  const conditions = ['d.environment_id = ?']
  const params: SqlValue[] = [environmentId]
  const add = (condition: string, ...values: SqlValue[]) => {
    conditions.push(condition)
    params.push(...values)
  }
  if (kind !== undefined) add('d.kind = ?', kind)
  if (id !== undefined) add('d.item_id = ?', id)
  if (after !== null) {
    add('d.publication <= ?', after.publication)
    add('(d.publication < ? OR (d.kind, d.item_id) > (?, ?))', after.publication, after.kind, after.id)
  }
  const text = `SELECT d.publication, d.action, d.kind, d.item_id AS id, ${NAME}, d.from_version AS "from",
    d.to_version AS "to", d.at, d.by_name AS "by", d.imported_at AS "importedAt", d.note, d.source_environment_id AS "sourceEnvironmentId", d.revision
    FROM deployment_changes d ${NAMED} WHERE ${conditions.join(' AND ')}
    ORDER BY d.publication DESC, d.kind, d.item_id`
  return sql.page(text, params, limit)
}
