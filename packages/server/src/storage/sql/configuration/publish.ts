/**
 * One publication: what is in force in an environment changes from one set of versions to another.
 *
 *   turn -> targets (asked for, in force elsewhere, or earlier) -> changes -> bounds -> written, with configuration
 *
 * Everything that can be refused is refused before the first row is written.
 */
import { randomUUIDv7 } from 'node:crypto'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { AuditEntry } from '../../audit.ts'
import type { Change, Intent, Item, ItemVersion, NewPublication, Published } from '../../deployments.ts'
import { insertAudit } from '../audit.ts'
import { keepConfiguration, takeTurn } from './configurations.ts'
import { findEnvironment } from '../environments.ts'
import { growRevision } from '../revision.ts'
import type { Sql } from '../sql.ts'

/** `restores`: of a roll back, the publication that first put the version in force. */
type Target = ItemVersion & { restores?: number | null }

interface Deployed extends Item {
  version: number
  /** Of its content; 0 for a policy. */
  bytes: number
}

/** A change that may be written: the version exists. */
interface Planned extends Change {
  bytes: number
  restores: number | null
}

type Refused = Exclude<Published, { outcome: 'published' }>

export async function publish(sql: Sql, publication: NewPublication, audit: AuditEntry[]): Promise<Published> {
  const { environmentId, intent } = publication
  const environment = await findEnvironment(sql, environmentId)
  if (environment === null) return { outcome: 'no_environment' }
  const { workspaceId } = environment
  const turn = await takeTurn(sql, environmentId)
  const deployed = await readDeployed(sql, environmentId)
  const targets = await targetsOf(sql, workspaceId, environmentId, intent)
  if (!Array.isArray(targets)) return targets
  const planned: Planned[] = []
  for (const target of targets) {
    const change = await plan(sql, workspaceId, deployed, target)
    if ('outcome' in change) return change
    if (change.from !== change.to) planned.push(change)
  }
  if (planned.length === 0) return { outcome: 'unchanged', revision: turn.revision }
  const tooLarge = tooLargeAfter(deployed, planned)
  if (tooLarge !== null) return { outcome: 'too_large', limit: tooLarge }
  return write(sql, publication, turn.publication + 1, planned, audit)
}

async function readDeployed(sql: Sql, environmentId: string): Promise<Map<string, Deployed>> {
  const text = `SELECT d.kind, d.item_id AS id, d.version, COALESCE(v.content_bytes, 0) AS bytes
    FROM deployments d
    LEFT JOIN prompt_versions v ON d.kind = 'prompt' AND v.prompt_id = d.item_id AND v.number = d.version
    WHERE d.environment_id = ?`
  const rows = await sql.all<Deployed>(text, [environmentId])
  return new Map(rows.map((row) => [keyOf(row), row]))
}

function keyOf({ kind, id }: Item): string {
  return `${kind} ${id}`
}

// --- targets

async function targetsOf(
  sql: Sql,
  workspaceId: string,
  environmentId: string,
  intent: Intent,
): Promise<Target[] | Refused> {
  if (intent.action === 'DEPLOY') return intent.items
  if (intent.action === 'PROMOTE') return promoted(sql, workspaceId, intent)
  const targets: Target[] = []
  for (const item of intent.items) {
    const target = await earlier(sql, environmentId, item)
    if (target === null) return { outcome: 'no_earlier', item }
    targets.push(target)
  }
  return targets
}

async function promoted(
  sql: Sql,
  workspaceId: string,
  { sourceEnvironmentId, items }: Intent & { action: 'PROMOTE' },
): Promise<Target[] | Refused> {
  const source = await findEnvironment(sql, sourceEnvironmentId)
  if (source?.workspaceId !== workspaceId) return { outcome: 'no_source_environment' }
  const inForce = await readDeployed(sql, sourceEnvironmentId)
  const targets: Target[] = []
  for (const item of items ?? inForce.values()) {
    const found = inForce.get(keyOf(item))
    if (found === undefined) return { outcome: 'not_in_force', item }
    targets.push(found)
  }
  return targets
}

/**
 * The version that was in force before the present one. A roll back stands where the version it restored stood, so that
 * rolling back again goes further back, not forth. Times without any version are passed over.
 */
async function earlier(sql: Sql, environmentId: string, { kind, id }: Item): Promise<Target | null> {
  const select = `SELECT publication, to_version AS version, restores FROM deployment_changes
    WHERE environment_id = ? AND kind = ? AND item_id = ?`
  const newestFirst = 'ORDER BY publication DESC LIMIT 1'
  const present = await sql.get<PastChange>(`${select} ${newestFirst}`, [environmentId, kind, id])
  if (present === null) return null
  const origin = present.restores ?? present.publication
  // No version has the number 0: nothing is left out while none is in force.
  const before = `${select} AND publication < ? AND to_version IS NOT NULL AND to_version <> ? ${newestFirst}`
  const found = await sql.get<PastChange>(before, [environmentId, kind, id, origin, present.version ?? 0])
  return found && { kind, id, version: found.version, restores: found.restores ?? found.publication }
}

interface PastChange {
  publication: number
  version: number | null
  restores: number | null
}

// --- changes and bounds

async function plan(
  sql: Sql,
  workspaceId: string,
  deployed: Map<string, Deployed>,
  { kind, id, version, restores = null }: Target,
): Promise<Planned | Refused> {
  const named = await readItem(sql, workspaceId, { kind, id })
  const found = version === null || named === null ? null : await readVersion(sql, workspaceId, { kind, id, version })
  if (named === null || (version !== null && found === null)) {
    return { outcome: 'no_item', item: { kind, id, version } }
  }
  const from = deployed.get(keyOf({ kind, id }))?.version ?? null
  return { kind, id, name: named.name, from, to: version, bytes: found?.bytes ?? 0, restores }
}

function readItem(sql: Sql, workspaceId: string, { kind, id }: Item): Promise<{ name: string } | null> {
  const text =
    kind === 'prompt'
      ? 'SELECT name FROM prompts WHERE workspace_id = ? AND id = ?'
      : 'SELECT id AS name FROM policies WHERE workspace_id = ? AND id = ?'
  return sql.get(text, [workspaceId, id])
}

function readVersion(
  sql: Sql,
  workspaceId: string,
  { kind, id, version }: ItemVersion,
): Promise<{ bytes: number } | null> {
  if (kind === 'prompt') {
    const text = 'SELECT content_bytes AS bytes FROM prompt_versions WHERE prompt_id = ? AND number = ?'
    return sql.get(text, [id, version])
  }
  const text = 'SELECT 0 AS bytes FROM policy_versions WHERE workspace_id = ? AND policy_id = ? AND number = ?'
  return sql.get(text, [workspaceId, id, version])
}

/** The bound that would be crossed. What only shrinks is always allowed, should a bound have been lowered. */
function tooLargeAfter(deployed: Map<string, Deployed>, planned: Planned[]): 'prompts' | 'policies' | 'bytes' | null {
  const before = sizesOf(deployed.values())
  const next = new Map(deployed)
  for (const { kind, id, to, bytes } of planned) {
    if (to === null) next.delete(keyOf({ kind, id }))
    else next.set(keyOf({ kind, id }), { kind, id, version: to, bytes })
  }
  const after = sizesOf(next.values())
  const bounds = {
    prompts: LIMITS.deployedPrompts,
    policies: LIMITS.deployedPolicies,
    bytes: LIMITS.deployedPromptBytes,
  }
  for (const bound of ['prompts', 'policies', 'bytes'] as const) {
    if (after[bound] > bounds[bound] && after[bound] > before[bound]) return bound
  }
  return null
}

function sizesOf(deployed: Iterable<Deployed>): Record<'prompts' | 'policies' | 'bytes', number> {
  const sizes = { prompts: 0, policies: 0, bytes: 0 }
  for (const { kind, bytes } of deployed) {
    sizes[kind === 'prompt' ? 'prompts' : 'policies'] += 1
    sizes.bytes += bytes
  }
  return sizes
}

// --- writing

async function write(
  sql: Sql,
  { environmentId, intent, note, by, now }: NewPublication,
  publication: number,
  planned: Planned[],
  audit: AuditEntry[],
): Promise<Published> {
  const put = `INSERT INTO deployments (environment_id, kind, item_id, version, publication, deployed_at, deployed_by)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (environment_id, kind, item_id) DO UPDATE SET version = excluded.version,
      publication = excluded.publication, deployed_at = excluded.deployed_at, deployed_by = excluded.deployed_by`
  const remove = 'DELETE FROM deployments WHERE environment_id = ? AND kind = ? AND item_id = ?'
  for (const { kind, id, to } of planned) {
    if (to === null) await sql.run(remove, [environmentId, kind, id])
    else await sql.run(put, [environmentId, kind, id, to, publication, now, by])
  }
  const revision = await keepConfiguration(sql, environmentId, publication)
  const record = `INSERT INTO deployment_changes (environment_id, publication, kind, item_id, action, from_version,
    to_version, restores, at, by_name, note, source_environment_id, revision)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
  const source = intent.action === 'PROMOTE' ? intent.sourceEnvironmentId : null
  for (const { kind, id, from, to, restores } of planned) {
    const change = [environmentId, publication, kind, id, intent.action, from, to, restores]
    await sql.run(record, [...change, now, by, note, source, revision])
  }
  const changes = planned.map(({ kind, id, name, from, to }): Change => ({ kind, id, name, from, to }))
  await insertAudit(
    sql,
    audit.flatMap((entry) => changes.map((change) => auditOf(entry, change, intent, { publication, revision, note }))),
  )
  await growRevision(sql)
  return { outcome: 'published', revision, publication, changes }
}

/** An entry of its own for each prompt and policy, so that the log of one of them is whole. */
function auditOf(
  entry: AuditEntry,
  { kind, id, name, from, to }: Change,
  intent: Intent,
  told: { publication: number; revision: string; note: string | null },
): AuditEntry {
  const verb = intent.action === 'DEPLOY' && to === null ? 'undeploy' : intent.action.toLowerCase()
  const source = intent.action === 'PROMOTE' ? { source: intent.sourceEnvironmentId } : {}
  const detail = JSON.stringify({ name, from, to, ...source, ...told })
  return { ...entry, id: randomUUIDv7(), action: `${kind}.${verb}`, targetKind: kind, targetId: id, detail }
}
