import { takeSum, withSum } from '../engine/row-sums.ts'
import type { DeployableKind } from '@tacho/contract/policies/deployment.ts'
import { mapPage, type Page } from '../../engine/page.ts'
import { read, conditionsGiven, type Sql } from '../engine/sql.ts'
import type {
  DeploymentChangePage,
  DeploymentChangeRow,
  DeploymentFilter,
  DeploymentPage,
  DeploymentRow,
} from '../../policies/deployments.ts'
import { readShares } from './shares.ts'
import { keyOf, readEarlier } from './targets.ts'

export const deploymentsActs = read({ listDeployments, listDeploymentChanges, findVersionsInForce })

const NAME = `COALESCE(p.name, d.item_id) AS name`
const NAMED = `JOIN environments e ON e.id = d.environment_id
    LEFT JOIN prompts p ON d.kind = 'prompt' AND p.workspace_id = e.workspace_id AND p.id = d.item_id`

async function listDeployments(
  sql: Sql,
  environmentId: string,
  { limit, after }: DeploymentPage,
): Promise<Page<DeploymentRow>> {
  const further = after ? ' AND (d.kind, d.item_id) > (:kind, :id)' : ''
  const text = `SELECT ${withSum('deployments', 'd.')}, ${NAME}, d.publication, d.deployed_at AS "deployedAt",
    d.deployed_by AS "deployedBy", d.imported_at AS "importedAt"
    FROM deployments d ${NAMED} WHERE d.environment_id = :env${further} ORDER BY d.kind, d.item_id`
  const params = { env: environmentId, kind: after?.kind, id: after?.id }
  type Read = Omit<DeploymentRow, 'id' | 'earlierVersion' | 'share'> & { itemId: string }
  const read = await sql.page<Read>(text, params, limit)
  const shares = await readShares(sql, environmentId)
  const page = mapPage(read, (row) => {
    const damaged = takeSum(sql, 'deployments', row, environmentId) ? {} : { damaged: true as const }
    const { itemId: id, ...deployment } = row
    const share = (row.kind === 'prompt' && shares.get(id)) || null
    return { ...deployment, id, share, ...damaged }
  })
  const earlier = await readEarlier(sql, environmentId, page.rows)
  return mapPage(page, (row) => ({ ...row, earlierVersion: earlier.get(keyOf(row))?.version ?? null }))
}

/** The version that was deployed at a time, and the one that is now; null: none. */
async function findVersionsInForce(sql: Sql, environmentId: string, kind: DeployableKind, id: string, at: number) {
  const of = { env: environmentId, kind, id }
  const item = 'environment_id = :env AND kind = :kind AND item_id = :id'
  const change = `SELECT to_version AS version FROM deployment_changes WHERE ${item} AND at <= :at
    ORDER BY publication DESC LIMIT 1`
  const [earlier, current] = await Promise.all([
    sql.get<{ version: number | null }>(change, { ...of, at }),
    sql.get<{ version: number }>(`SELECT version FROM deployments WHERE ${item}`, of),
  ])
  return { atThatTime: earlier?.version ?? null, now: current?.version ?? null }
}

/** Names one such environment. */
export async function deployedIn(sql: Sql, workspaceId: string, kind: DeployableKind, id: string) {
  const text = `SELECT e.name AS "deployedIn" FROM environments e
    JOIN deployments d ON d.environment_id = e.id AND d.kind = :kind AND d.item_id = :id
    WHERE e.workspace_id = :workspaceId ORDER BY e.id LIMIT 1`
  return sql.get<{ deployedIn: string }>(text, { kind, id, workspaceId })
}

function listDeploymentChanges(
  sql: Sql,
  environmentId: string,
  { kind, id, from, to }: DeploymentFilter,
  { limit, after }: DeploymentChangePage,
): Promise<Page<DeploymentChangeRow>> {
  const { publication, kind: afterKind, id: afterId } = after ?? {}
  const params = { env: environmentId, kind, id, from, to, publication, afterKind, afterId }
  const conditions = [
    'd.environment_id = :env',
    'd.kind = :kind',
    'd.item_id = :id',
    'd.at >= :from',
    'd.at < :to',
    'd.publication <= :publication',
    '(d.publication < :publication OR (d.kind, d.item_id) > (:afterKind, :afterId))',
  ]
  const text = `SELECT d.publication, d.action, d.kind, d.item_id AS id, ${NAME}, d.from_version AS "from",
    d.to_version AS "to", d.at, d.by_name AS "by", d.imported_at AS "importedAt", d.note, d.source_environment_id AS "sourceEnvironmentId", d.revision,
    d.share_version AS "shareVersion", d.share_percent AS "sharePercent"
    FROM deployment_changes d ${NAMED} WHERE ${conditionsGiven(conditions, params)}
    ORDER BY d.publication DESC, d.kind, d.item_id`
  return sql.page(text, params, limit)
}
