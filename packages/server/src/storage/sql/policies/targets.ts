import type { DeployableKind } from '@tacho/contract/policies/deployment.ts'
import { DEPLOYABLE_KINDS } from '@tacho/contract/engine/words.ts'
import type { Intent, Item, ItemVersion, Published } from '../../policies/deployments.ts'
import { chunksOf, inChunks } from '../engine/rows.ts'
import { findEnvironment } from '../tenants/workspaces.ts'
import { takeSum, withSum } from '../engine/row-sums.ts'
import type { Sql } from '../engine/sql.ts'

/**
 * `restores`: for a rollback, the publication that first deployed the version. `share`: as in `DeployedItem`, where null is
 * absent. Absent here: a share ends only if another version comes into force.
 */
export type Target = ItemVersion & { restores?: number | null; share?: number | null }

export interface Deployed extends Item {
  version: number
  bytes: number
}

export type Refused = Exclude<Published, { outcome: 'published' }>

export async function readDeployed(sql: Sql, environmentId: string): Promise<Map<string, Deployed>> {
  const text = `SELECT ${withSum('deployments', 'd.')}, COALESCE(v.content_bytes, 0) AS bytes
    FROM deployments d JOIN environments e ON e.id = d.environment_id
    LEFT JOIN prompt_versions v ON d.kind = 'prompt' AND v.workspace_id = e.workspace_id AND v.prompt_id = d.item_id
      AND v.number = d.version
    WHERE d.environment_id = :env`
  const rows = await sql.all<Omit<Deployed, 'id'> & { itemId: string }>(text, { env: environmentId })
  // A damaged row counts as none, so that the same version can be deployed again.
  const intact = rows.filter((row) => takeSum(sql, 'deployments', row, environmentId))
  return new Map(intact.map(({ itemId: id, ...row }) => [keyOf({ ...row, id }), { ...row, id }]))
}

export function keyOf({ kind, id }: Item): string {
  return `${kind} ${id}`
}

export function idsOf(kind: DeployableKind, items: readonly Item[]): string[] {
  return items.filter((item) => item.kind === kind).map(({ id }) => id)
}

export async function targetsOf(
  sql: Sql,
  workspaceId: string,
  environmentId: string,
  intent: Intent,
): Promise<Target[] | Refused> {
  if (intent.action === 'DEPLOY') return intent.items.map((item) => ({ ...item, share: item.share ?? null }))
  if (intent.action === 'ROLL_BACK') {
    const earlier = await readEarlier(sql, environmentId, intent.items)
    return allOf(earlier, intent.items, 'no_earlier')
  }
  const { sourceEnvironmentId, items } = intent
  const source = await findEnvironment(sql, sourceEnvironmentId)
  if (source?.workspaceId !== workspaceId) return { outcome: 'no_source_environment' }
  const inForce = await readDeployed(sql, sourceEnvironmentId)
  return allOf(inForce, items ?? inForce.values(), 'not_in_force')
}

function allOf(
  known: ReadonlyMap<string, Target>,
  items: Iterable<Item>,
  ifMissing: 'no_earlier' | 'not_in_force',
): Target[] | Refused {
  const targets: Target[] = []
  for (const item of items) {
    const target = known.get(keyOf(item))
    if (target === undefined) return { outcome: ifMissing, item }
    targets.push(target)
  }
  return targets
}

interface PastChange {
  id: string
  publication: number
  version: number | null
  restores: number | null
}

/** Each item's newest change that satisfies `condition`, which names the change `n`. A share leaves the version in force as it is. */
const newestChange = (condition: string) => `SELECT c.item_id AS id, c.publication,
    c.to_version AS version, c.restores
  FROM (VALUES :asked) AS asked
  JOIN deployment_changes c ON c.environment_id = :env AND c.kind = :kind AND c.item_id = asked.column1
    AND c.publication = (SELECT n.publication FROM deployment_changes n
      WHERE n.environment_id = :env AND n.kind = :kind AND n.item_id = asked.column1 AND n.action <> 'SHARE'${condition}
      ORDER BY n.publication DESC LIMIT 1)`

const PRESENT = newestChange('')
/** PostgreSQL takes numbers in `VALUES` for texts. */
const EARLIER = newestChange(` AND n.publication < CAST(asked.column2 AS BIGINT) AND n.to_version IS NOT NULL
      AND n.to_version <> CAST(asked.column3 AS BIGINT)`)

/** A rollback takes the place of the version it restored, so rolling back again goes further back, not forward. */
export async function readEarlier(sql: Sql, environmentId: string, items: readonly Item[]) {
  const earlier = new Map<string, Target>()
  for (const kind of DEPLOYABLE_KINDS) {
    const of = { env: environmentId, kind }
    const ask = (chunk: string[]) => sql.all<PastChange>(PRESENT, { ...of, asked: chunk.map((id) => [id]) })
    const present = await inChunks(idsOf(kind, items), ask, '')
    // No version has the number 0, so nothing is left out if none is deployed.
    const before = present.map(({ id, publication, version, restores }) => [id, restores ?? publication, version ?? 0])
    for (const asked of chunksOf(before)) {
      for (const { id, publication, version, restores } of await sql.all<PastChange>(EARLIER, { ...of, asked })) {
        earlier.set(keyOf({ kind, id }), { kind, id, version, restores: restores ?? publication })
      }
    }
  }
  return earlier
}
