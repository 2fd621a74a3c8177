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
  Intent,
  Item,
  ItemVersion,
  Published,
} from '../../policies/deployments.ts'
import { readShares } from './shares.ts'
import { DEPLOYABLE_KINDS } from '@tacho/contract/engine/words.ts'
import { chunksOf, inChunks } from '../engine/rows.ts'
import { findEnvironment } from '../tenants/workspaces.ts'

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

/** Names an environment in which the item is deployed. */
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

/**
 * `restores`: for a rollback, the publication that first deployed the version. `share`: as in `DeployedItem`, but
 * absent instead of null. If absent, a share ends only if another version comes into force.
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
    for (const { kind, id, restores: seen } of intent.items) {
      const restores = earlier.get(keyOf({ kind, id }))?.version ?? null
      if (seen !== undefined && seen !== restores)
        return { outcome: 'other_earlier', item: { kind, id }, restores, seen }
    }
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

/**
 * Each item's newest change that satisfies `condition`, in which the change is `n`. Skips shares, because they do not
 * change the version in force.
 */
const newestChange = (condition: string) => `SELECT c.item_id AS id, c.publication,
    c.to_version AS version, c.restores
  FROM (VALUES :asked) AS asked
  JOIN deployment_changes c ON c.environment_id = :env AND c.kind = :kind AND c.item_id = asked.column1
    AND c.publication = (SELECT n.publication FROM deployment_changes n
      WHERE n.environment_id = :env AND n.kind = :kind AND n.item_id = asked.column1 AND n.action <> 'SHARE'${condition}
      ORDER BY n.publication DESC LIMIT 1)`

const PRESENT = newestChange('')
/** The casts are needed because PostgreSQL takes numbers in `VALUES` for texts. */
const EARLIER = newestChange(` AND n.publication < CAST(asked.column2 AS BIGINT) AND n.to_version IS NOT NULL
      AND n.to_version <> CAST(asked.column3 AS BIGINT)`)

/**
 * A rollback counts at the place of the version that it restored, so the next rollback goes further back, not forward.
 */
async function readEarlier(sql: Sql, environmentId: string, items: readonly Item[]) {
  const earlier = new Map<string, Target>()
  for (const kind of DEPLOYABLE_KINDS) {
    const of = { env: environmentId, kind }
    const ask = (chunk: string[]) => sql.all<PastChange>(PRESENT, { ...of, asked: chunk.map((id) => [id]) })
    const present = await inChunks(idsOf(kind, items), ask, '')
    // No version has the number 0, so this excludes nothing if none is deployed.
    const before = present.map(({ id, publication, version, restores }) => [id, restores ?? publication, version ?? 0])
    for (const asked of chunksOf(before)) {
      for (const { id, publication, version, restores } of await sql.all<PastChange>(EARLIER, { ...of, asked })) {
        earlier.set(keyOf({ kind, id }), { kind, id, version, restores: restores ?? publication })
      }
    }
  }
  return earlier
}
