/**
 *   lock -> targets (requested, deployed elsewhere, or earlier) -> changes -> bounds -> written, with configuration
 *
 * All checks come before the first write.
 */
import { write, type Sql } from '../engine/sql.ts'
import { randomBytes } from 'node:crypto'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { DeployableKind } from '@tacho/contract/policies/deployment.ts'
import { DEPLOYABLE_KINDS } from '@tacho/contract/engine/words.ts'
import type { AuditEntry } from '../../people/operators.ts'
import type {
  Change,
  Intent,
  Item,
  ItemVersion,
  NewPublication,
  PromptShareRow,
  Published,
} from '../../policies/deployments.ts'
import { uuidv7 } from '../../engine/uuid.ts'
import { endGrantsOf } from '../approvals/grants.ts'
import { insertAudit } from '../people/audit.ts'
import { allIn, chunksOf, insertRows } from '../engine/rows.ts'
import { findConfiguration, isIntact, keepConfiguration, lockConfiguration } from './configurations.ts'
import { findEnvironment } from '../tenants/workspaces.ts'
import { growRevision } from '../engine/revision.ts'
import { putShare, readShares, removeShare, type RunningShare } from './shares.ts'
import { idsOf, keyOf, readDeployed, targetsOf, type Deployed, type Refused, type Target } from './deployments.ts'

export const publishActs = write({ publish })

interface Planned extends Change {
  bytes: number
  restores: number | null
  /** The share so far; it ends unless `share` continues it. */
  running: PromptShareRow | null
}

/** Prompts and policies that an environment serves. */
interface Served {
  deployed: Map<string, Deployed>
  shares: Map<string, RunningShare>
}

const readServed = async (sql: Sql, environmentId: string): Promise<Served> => {
  return { deployed: await readDeployed(sql, environmentId), shares: await readShares(sql, environmentId) }
}

export async function publish(sql: Sql, publication: NewPublication, audit: AuditEntry[]): Promise<Published> {
  const { environmentId, intent } = publication
  const environment = await findEnvironment(sql, environmentId)
  if (environment === null) return { outcome: 'no_environment' }
  const { workspaceId } = environment
  const present = await lockConfiguration(sql, environmentId)
  const served = await readServed(sql, environmentId)
  // Comes first: after another person's rollback, there may be no earlier version left.
  const overtaken = overtakenBy(served, intent)
  if (overtaken !== null) return overtaken
  const targets = await targetsOf(sql, workspaceId, environmentId, intent)
  if (!Array.isArray(targets)) return targets
  const planned = await planAll(sql, workspaceId, served, targets)
  if (!Array.isArray(planned)) return planned
  if (planned.length === 0) {
    const stored = await findConfiguration(sql, environmentId)
    if (stored !== null && isIntact(stored)) return { outcome: 'unchanged', revision: present.revision }
    const revision = await keepConfiguration(sql, environmentId, present.publication)
    await growRevision(sql)
    return { outcome: 'unchanged', revision }
  }
  const tooLarge = tooLargeAfter(served, planned)
  if (tooLarge !== null) return { outcome: 'too_large', limit: tooLarge }
  return writePublication(sql, publication, present.publication + 1, planned, audit)
}

/** Checks whether another person published after the operator read the state. */
function overtakenBy({ deployed }: Served, intent: Intent): Refused | null {
  if (intent.action === 'PROMOTE') return null
  for (const { kind, id, replaces: seen } of intent.items) {
    const inForce = deployed.get(keyOf({ kind, id }))?.version ?? null
    if (seen !== undefined && seen !== inForce) return { outcome: 'overtaken', item: { kind, id }, inForce, seen }
  }
  return null
}

async function planAll(
  sql: Sql,
  workspaceId: string,
  { deployed, shares }: Served,
  targets: Target[],
): Promise<Planned[] | Refused> {
  const names = await readNames(sql, workspaceId, targets)
  const sizes = await readSizes(sql, workspaceId, targets)
  const planned: Planned[] = []
  for (const { kind, id, version, restores = null, share } of targets) {
    const named = names.get(keyOf({ kind, id }))
    const bytes = version === null || share === 0 ? 0 : sizes.get(versionKeyOf({ kind, id, version }))
    if (named === undefined || bytes === undefined) return { outcome: 'no_item', item: { kind, id, version } }
    const from = deployed.get(keyOf({ kind, id }))?.version ?? null
    if (named.archivedAt !== null && version !== null) return { outcome: 'archived', item: { kind, id } }
    const running = (kind === 'prompt' && shares.get(id)) || null
    const item = { kind, id, name: named.name, from, bytes, restores, running }
    if (share) {
      if (from === null || version === null) return { outcome: 'no_share', item: { kind, id }, why: 'no_other' }
      if (from === version) return { outcome: 'no_share', item: { kind, id }, why: 'in_force' }
      const isSame = !running?.damaged && running?.version === version && running.percent === share
      if (!isSame) planned.push({ ...item, to: from, share: { version, percent: share } })
    } else if (share === 0) {
      if (running && running.version === version) planned.push({ ...item, to: from, share: { version, percent: 0 } })
    } else if (from !== version) planned.push({ ...item, to: version, share: null })
    else if (share === null && running) {
      planned.push({ ...item, to: from, share: { version: running.version, percent: 0 } })
    }
  }
  return planned
}

const NAMES_OF: Record<DeployableKind, string> = {
  prompt: `SELECT id, name, archived_at AS "archivedAt" FROM prompts WHERE workspace_id = :workspaceId AND id IN (:ids)`,
  policy: `SELECT id, id AS name, archived_at AS "archivedAt" FROM policies WHERE workspace_id = :workspaceId AND id IN (:ids)`,
}

interface Named {
  name: string
  archivedAt: number | null
}

async function readNames(sql: Sql, workspaceId: string, items: Item[]): Promise<Map<string, Named>> {
  const names = new Map<string, Named>()
  for (const kind of DEPLOYABLE_KINDS) {
    const ids = idsOf(kind, items)
    const rows = await allIn<Named & { id: string }>(sql, NAMES_OF[kind], { workspaceId, ids })
    for (const { id, ...named } of rows) names.set(keyOf({ kind, id }), named)
  }
  return names
}

const SIZES_OF: Record<DeployableKind, string> = {
  prompt: `SELECT v.prompt_id AS id, v.number AS version, v.content_bytes AS bytes
    FROM (VALUES :asked) AS asked JOIN prompts p ON p.workspace_id = :workspaceId AND p.id = asked.column1
    JOIN prompt_versions v ON v.workspace_id = p.workspace_id AND v.prompt_id = p.id AND v.number = CAST(asked.column2 AS BIGINT)`,
  policy: `SELECT v.policy_id AS id, v.number AS version, 0 AS bytes
    FROM (VALUES :asked) AS asked JOIN policy_versions v
      ON v.workspace_id = :workspaceId AND v.policy_id = asked.column1 AND v.number = CAST(asked.column2 AS BIGINT)`,
}

async function readSizes(sql: Sql, workspaceId: string, targets: Target[]): Promise<Map<string, number>> {
  const sizes = new Map<string, number>()
  for (const kind of DEPLOYABLE_KINDS) {
    const asked = targets.flatMap((one) => (one.kind === kind && one.version !== null ? [[one.id, one.version]] : []))
    for (const chunk of chunksOf(asked)) {
      const params = { asked: chunk, workspaceId }
      const rows = await sql.all<{ id: string; version: number; bytes: number }>(SIZES_OF[kind], params)
      for (const { id, version, bytes } of rows) sizes.set(versionKeyOf({ kind, id, version }), bytes)
    }
  }
  return sizes
}

function versionKeyOf({ kind, id, version }: ItemVersion): string {
  return `${kind} ${version} ${id}`
}

const BOUNDS = {
  prompts: LIMITS.deployedPrompts,
  policies: LIMITS.deployedPolicies,
  shares: LIMITS.promptShares,
  bytes: LIMITS.deployedPromptBytes,
}
type Bound = keyof typeof BOUNDS

/** A change that only shrinks is always allowed, because a bound may have been lowered. */
function tooLargeAfter({ deployed, shares }: Served, planned: Planned[]): Bound | null {
  const shareBytes = new Map(Array.from(shares, ([id, { bytes }]) => [id, bytes]))
  const before = sizesOf(deployed.values(), shareBytes)
  const next = new Map(deployed)
  const nextShares = new Map(shareBytes)
  for (const { kind, id, to, bytes, share } of planned) {
    if (kind === 'prompt') nextShares.delete(id)
    if (share && share.percent > 0) nextShares.set(id, bytes)
    if (share) continue
    if (to === null) next.delete(keyOf({ kind, id }))
    else next.set(keyOf({ kind, id }), { kind, id, version: to, bytes })
  }
  const after = sizesOf(next.values(), nextShares)
  const isTooLarge = (bound: Bound) => after[bound] > BOUNDS[bound] && after[bound] > before[bound]
  return (Object.keys(BOUNDS) as Bound[]).find(isTooLarge) ?? null
}

function sizesOf(deployed: Iterable<Deployed>, shareBytes: ReadonlyMap<string, number>): Record<Bound, number> {
  const sizes = { prompts: 0, policies: 0, shares: shareBytes.size, bytes: 0 }
  for (const bytes of shareBytes.values()) sizes.bytes += bytes
  for (const { kind, bytes } of deployed) {
    sizes[kind === 'prompt' ? 'prompts' : 'policies'] += 1
    sizes.bytes += bytes
  }
  return sizes
}

export async function deploymentFault(
  sql: Sql,
  workspaceId: string,
  environmentId: string,
  items: Target[],
): Promise<{ outcome: 'foreign' | 'too_large'; index: number } | null> {
  const served = await readServed(sql, environmentId)
  const planned = await planAll(sql, workspaceId, served, items)
  if (!Array.isArray(planned)) {
    const refused = 'item' in planned ? keyOf(planned.item) : null
    const index = items.findIndex((item) => keyOf(item) === refused)
    return { outcome: 'foreign', index: Math.max(0, index) }
  }
  return tooLargeAfter(served, planned) === null ? null : { outcome: 'too_large', index: 0 }
}

async function writePublication(
  sql: Sql,
  { environmentId, intent, note, by, now }: NewPublication,
  publication: number,
  planned: Planned[],
  audit: AuditEntry[],
): Promise<Published> {
  const gone = planned.filter(({ to }) => to === null)
  for (const kind of DEPLOYABLE_KINDS) {
    const remove = `DELETE FROM deployments WHERE environment_id = :env AND kind = :kind AND item_id IN (:ids)`
    for (const ids of chunksOf(idsOf(kind, gone))) await sql.run(remove, { env: environmentId, kind, ids })
  }
  const put = planned
    .filter(({ to, share }) => to !== null && share === null)
    .map(({ kind, id, to }) => {
      return { environmentId, kind, itemId: id, version: to, publication, deployedAt: now, deployedBy: by }
    })
  const replaced = `ON CONFLICT (environment_id, kind, item_id) DO UPDATE SET version = excluded.version,
    publication = excluded.publication, deployed_at = excluded.deployed_at, deployed_by = excluded.deployed_by,
    row_sum = excluded.row_sum, imported_at = NULL`
  await insertRows(sql, 'deployments', put, replaced)
  await endGrantsOf(sql, environmentId, idsOf('policy', planned), now)
  for (const { id, share, running } of planned) {
    if (running) await removeShare(sql, environmentId, id)
    if (share && share.percent > 0) await putShare(sql, environmentId, shareRowOf(id, share, running, by, now))
  }
  const revision = await keepConfiguration(sql, environmentId, publication)
  const source = intent.action === 'PROMOTE' ? intent.sourceEnvironmentId : null
  const records = planned.map(({ kind, id, from, to, restores, share }) => {
    const action = share === null ? intent.action : 'SHARE'
    const item = { environmentId, publication, kind, itemId: id, action }
    const shared = { shareVersion: share?.version, sharePercent: share?.percent }
    const versions = { fromVersion: from, toVersion: to, restores, ...shared }
    return { ...item, ...versions, at: now, byName: by, note, sourceEnvironmentId: source, revision }
  })
  await insertRows(sql, 'deployment_changes', records)
  const changes = planned.map(({ kind, id, name, from, to, share }): Change => ({ kind, id, name, from, to, share }))
  const publicationNote = { publication, revision, note }
  const entries = audit.flatMap((entry) => planned.map((change) => auditOf(entry, change, intent, publicationNote)))
  await insertAudit(sql, entries)
  await growRevision(sql)
  return { outcome: 'published', revision, publication, changes }
}

/** One entry per prompt and policy, so that the log of each is complete. */
function auditOf(
  entry: AuditEntry,
  { kind, id, name, from, to, share, running }: Planned,
  intent: Intent,
  publicationNote: { publication: number; revision: string; note: string | null },
): AuditEntry {
  const isEnded = intent.action === 'DEPLOY' && to === null
  const verb = share ? (share.percent > 0 ? 'share' : 'end_share') : isEnded ? 'undeploy' : intent.action.toLowerCase()
  const source = intent.action === 'PROMOTE' ? { source: intent.sourceEnvironmentId } : {}
  const shared = { ...(share && { share }), ...(running && { shareBefore: shareOf(running) }) }
  const detail = JSON.stringify({ name, from, to, ...source, ...shared, ...publicationNote })
  return {
    ...entry,
    id: uuidv7(entry.at, randomBytes),
    action: `${kind}.${verb}`,
    targetKind: kind,
    targetId: id,
    detail,
  }
}

const shareOf = ({ version, percent }: PromptShareRow) => ({ version, percent })

/** Keeps the salt, so that with another percentage, the same sessions stay in the share. */
function shareRowOf(
  promptId: string,
  share: { version: number; percent: number },
  running: PromptShareRow | null,
  startedBy: string,
  startedAt: number,
): PromptShareRow {
  if (running?.version === share.version && !running.damaged) return { ...running, ...share }
  return { promptId, ...share, salt: randomBytes(8).toString('hex'), startedAt, startedBy }
}
