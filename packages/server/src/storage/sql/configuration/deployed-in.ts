import type { DeployableKind } from '@tacho/contract/operator/deployment.ts'
import type { Sql } from '../sql.ts'

export async function deployedIn(sql: Sql, workspaceId: string, kind: DeployableKind, id: string) {
  const text = `SELECT e.name AS "deployedIn" FROM environments e
    JOIN deployments d ON d.environment_id = e.id AND d.kind = :kind AND d.item_id = :id
    WHERE e.workspace_id = :workspaceId ORDER BY e.id LIMIT 1`
  return sql.get<{ deployedIn: string }>(text, { kind, id, workspaceId })
}
