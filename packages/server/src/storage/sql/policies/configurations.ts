import { lookup, read, selectList, type Sql, write } from '../engine/sql.ts'
import { hash } from 'node:crypto'
import type { RuntimeConfig, RuntimePolicy, RuntimePrompt } from '@tacho/contract/policies/runtime-config.ts'
import { STOP_POLICY, stopPolicy } from '@tacho/contract/engine/words.ts'
import canonicalize from 'canonicalize'
import type { Configuration, ToolLabelsRow } from '../../policies/deployments.ts'
import { type PolicyVersionRow, type PromptVersionRow, stopCondition } from '../../policies/policies.ts'
import { StorageError } from '../../engine/store.ts'
import { withJson, insertRows, replacing } from '../engine/rows.ts'
import { assertSum, damagedError, nameOf, withSum } from '../engine/row-sums.ts'
import { isPromptIntact } from './prompts.ts'
import { readShares } from './shares.ts'
import { stopsInEffect } from './stops.ts'
import type { ToolLabel } from '@tacho/contract/policies/tool-labels.ts'
import type { AuditEntry } from '../../people/operators.ts'
import { insertAudit } from '../people/audit.ts'
import { growRevision } from '../engine/revision.ts'
import { findEnvironment } from '../tenants/workspaces.ts'

export const configurationsActs = { ...read({ readConfiguration, checkConfiguration }), ...lookup({ findToolLabels }) }

/** The revision is the SHA-256 of the canonical JSON (RFC 8785) of the rest, so clients can compute it too. */
function configurationOf({ prompts, policies, toolLabels = [] }: Content): Configuration & { text: string } {
  const content = {
    prompts: prompts.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    policies: policies.toSorted((a, b) => (a.policyId < b.policyId ? -1 : 1)),
    // Left out if empty, so that the text and revision of older configurations stay the same.
    ...(toolLabels.length > 0 && { toolLabels }),
  }
  const revision = hash('sha256', canonicalize(content) ?? '')
  return { revision, text: JSON.stringify({ revision, ...content }) }
}

type Content = Omit<RuntimeConfig, 'revision'>

const EMPTY = configurationOf({ prompts: [], policies: [] })

/** The returned text is null if `knownRevision` is current. */
async function readConfiguration(
  sql: Sql,
  environmentId: string,
  knownRevision: string | null,
): Promise<Configuration> {
  const revision = await readRevision(sql, environmentId)
  if (revision === knownRevision) return { revision, text: null }
  const stored = await findConfiguration(sql, environmentId)
  if (stored === null) return EMPTY
  if (!isIntact(stored)) {
    const name = await nameOfDamage(sql, environmentId, stored.text)
    sql.onDamage({ table: 'configurations', name, tenantId: environmentId })
    throw damagedError(name, REMEDY)
  }
  return stored
}

/** Reads the state for lists, which show damage. */
async function checkConfiguration(sql: Sql, environmentId: string): Promise<{ revision: string; damaged?: true }> {
  const stored = await findConfiguration(sql, environmentId)
  if (stored === null) return { revision: EMPTY.revision }
  return { revision: stored.revision, ...(!isIntact(stored) && { damaged: true as const }) }
}

const REMEDY = 'Deploy it again, or restore a backup'

export function findConfiguration(sql: Sql, environmentId: string) {
  const text = 'SELECT revision, body AS text FROM configurations WHERE environment_id = :env'
  return sql.get<Configuration & { text: string }>(text, { env: environmentId })
}

/** Whether the text is what was published: the revision is its checksum. */
export function isIntact({ revision, text }: Configuration & { text: string }): boolean {
  const read = parsed(text)
  if (read === null || read['revision'] !== revision) return false
  const { revision: _, ...content } = read
  return hash('sha256', canonicalize(content) ?? '') === revision
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return null
  }
}

/** Names the damaged policies and prompts of a configuration: those that differ from their stored versions. */
export async function nameOfDamage(sql: Sql, environmentId: string, text: string): Promise<string> {
  const whole = 'configuration in force'
  const { policies, prompts } = (parsed(text) ?? {}) as { policies?: unknown[]; prompts?: unknown[] }
  if (!Array.isArray(policies) || !Array.isArray(prompts)) return whole
  const same = new Set([...policies, ...prompts].map((item) => canonicalize(item)))
  const deployed = await readDeployedContent(sql, environmentId).catch((error: unknown) => {
    if (error instanceof StorageError && error.code === 'configuration_damaged') return null
    throw error
  })
  if (deployed === null) return whole
  const named = [
    ...deployed.policies.map((item) => ({ item, name: `policy ${JSON.stringify(item.policyId)}` })),
    ...deployed.prompts.map((item) => ({ item, name: `prompt ${JSON.stringify(item.name)}` })),
  ]
  const differing = named.filter(({ item }) => !same.has(canonicalize(item))).map(({ name }) => name)
  return differing.length === 0 ? whole : `${differing.slice(0, 3).join(', ')} of the ${whole}`
}

export async function readRevision(sql: Sql, environmentId: string): Promise<string> {
  const text = 'SELECT revision FROM configurations WHERE environment_id = :env'
  return (await sql.get<{ revision: string }>(text, { env: environmentId }))?.revision ?? EMPTY.revision
}

/** Publications run one after another. Returns the current configuration. */
export async function lockConfiguration(sql: Sql, environmentId: string) {
  const create = `INSERT INTO configurations (environment_id, publication, revision, body)
    VALUES (:env, 0, :revision, :text) ON CONFLICT (environment_id) DO NOTHING`
  await sql.run(create, { env: environmentId, ...EMPTY })
  const lock = `UPDATE configurations SET publication = publication WHERE environment_id = :env
    RETURNING revision, publication`
  const row = await sql.get<{ revision: string; publication: number }>(lock, { env: environmentId })
  if (row === null) throw new Error('The configuration of an environment is missing')
  return row
}

/**
 * `stored`: for changes of stops and labels, which leave the deployed versions unchanged. So a damaged deployed version
 * never prevents a stop.
 */
export async function keepConfiguration(
  sql: Sql,
  environmentId: string,
  publication: number,
  source: 'deployed' | 'stored' = 'deployed',
): Promise<string> {
  const deployed =
    (source === 'stored' && (await readStoredContent(sql, environmentId))) ||
    (await readDeployedContent(sql, environmentId))
  const stops = (await stopsInEffect(sql, environmentId)).map((stop) => stopPolicy(stop, stopCondition(stop)))
  const toolLabels = (await findToolLabels(sql, environmentId))?.rules ?? []
  const content = { prompts: deployed.prompts, policies: [...deployed.policies, ...stops], toolLabels }
  const { revision, text } = configurationOf(content)
  const keep = `UPDATE configurations SET publication = :publication, revision = :revision, body = :text
    WHERE environment_id = :env`
  await sql.run(keep, { publication, revision, text, env: environmentId })
  return revision
}

const toLabels = withJson<ToolLabelsRow>('rules')

/** Null: the environment has no labels. */
async function findToolLabels(sql: Sql, environmentId: string): Promise<ToolLabelsRow | null> {
  const text = `SELECT ${selectList('rules changed_at changed_by')} FROM tool_labels WHERE environment_id = :env`
  const row = await sql.get<object>(text, { env: environmentId })
  return row && toLabels(row)
}

/** Null: the content is damaged. */
async function readStoredContent(sql: Sql, environmentId: string): Promise<Content | null> {
  const stored = await findConfiguration(sql, environmentId)
  if (stored === null || !isIntact(stored)) return null
  const { prompts, policies } = JSON.parse(stored.text) as RuntimeConfig
  return { prompts, policies: policies.filter(({ policyId }) => !policyId.startsWith(STOP_POLICY)) }
}

/** Throws if a row is damaged, because nothing is published from damaged rows. */
async function readDeployedContent(
  sql: Sql,
  env: string,
): Promise<{ prompts: RuntimePrompt[]; policies: RuntimePolicy[] }> {
  const deployments = `SELECT ${withSum('deployments')} FROM deployments WHERE environment_id = :env`
  for (const row of await sql.all<object>(deployments, { env })) assertSum(sql, 'deployments', row, env, REMEDY)
  const prompts = await sql.all<PromptVersionRow & { name: string }>(
    `SELECT p.name, v.content, ${withSum('prompt_versions', 'v.')}
      FROM deployments d JOIN environments e ON e.id = d.environment_id
      JOIN prompts p ON p.workspace_id = e.workspace_id AND p.id = d.item_id
      JOIN prompt_versions v ON v.workspace_id = p.workspace_id AND v.prompt_id = p.id AND v.number = d.version
      WHERE d.environment_id = :env AND d.kind = 'prompt'`,
    { env },
  )
  const policies = await sql.all<PolicyVersionRow>(
    `SELECT ${withSum('policy_versions', 'v.')}
      FROM deployments d JOIN environments e ON e.id = d.environment_id
      JOIN policy_versions v ON v.workspace_id = e.workspace_id AND v.policy_id = d.item_id AND v.number = d.version
      WHERE d.environment_id = :env AND d.kind = 'policy'`,
    { env },
  )
  const shares = await readShareContents(sql, env)
  return {
    prompts: prompts.map((row) => {
      if (!isPromptIntact(sql, row, env)) throw damagedError(nameOf('prompt_versions', row), OTHER_VERSION)
      const { promptId, name, id: versionId, number, content, contentHash } = row
      const share = shares.get(promptId)
      return { promptId, name, versionId, version: String(number), content, contentHash, ...(share && { share }) }
    }),
    policies: policies.map((row) => {
      assertSum(sql, 'policy_versions', row, env, OTHER_VERSION)
      const { number, onError, policyId, name, description, condition, severity, action } = row
      const policy = { policyId, name, description, version: String(number), condition, severity, action }
      // Left out if unset, so that the text and revision of older versions stay the same.
      return onError === null ? policy : { ...policy, onError }
    }),
  }
}

const OTHER_VERSION = 'Deploy another version of it, or restore a backup'

/** Contents of shares as clients get them, by prompt. Throws if a row is damaged. */
async function readShareContents(
  sql: Sql,
  environmentId: string,
): Promise<Map<string, NonNullable<RuntimePrompt['share']>>> {
  const shares = await readShares(sql, environmentId)
  if (shares.size === 0) return new Map()
  const text = `SELECT v.content, ${withSum('prompt_versions', 'v.')}
    FROM prompt_shares s JOIN environments e ON e.id = s.environment_id
    JOIN prompt_versions v ON v.workspace_id = e.workspace_id AND v.prompt_id = s.prompt_id AND v.number = s.version
    WHERE s.environment_id = :env`
  const rows = await sql.all<PromptVersionRow>(text, { env: environmentId })
  const versions = new Map(rows.map((row) => [row.promptId, row]))
  const contents = new Map<string, NonNullable<RuntimePrompt['share']>>()
  for (const share of shares.values()) {
    const { promptId, percent, salt, version: number } = share
    const row = versions.get(promptId)
    if (share.damaged) throw damagedError(nameOf('prompt_shares', share), END_IT)
    if (row === undefined || !isPromptIntact(sql, row, environmentId)) {
      throw damagedError(nameOf('prompt_versions', { promptId, number }), END_IT)
    }
    const { id: versionId, content, contentHash } = row
    contents.set(promptId, { percent, salt, versionId, version: String(number), content, contentHash })
  }
  return contents
}

const END_IT = 'End the share, or restore a backup'

/**
 * Labels of the tools of an environment, served with its policies. Changing them is no publication: deployments,
 * versions and their history stay unchanged.
 */
export const toolLabelsActs = { ...lookup({ listToolNames }), ...write({ changeToolLabels }) }

/** Null: there is no such environment. Setting the labels that are already set changes nothing. */
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

/**
 * Tools with calls since a time. Tools of erased runs are left out because their calls no longer count, even if the
 * dictionary still has their names.
 */
async function listToolNames(sql: Sql, environmentId: string, from: number): Promise<string[]> {
  const text = `SELECT t.tool FROM (
      SELECT tool_key FROM tool_hours WHERE environment_id = :env AND hour >= :from
      GROUP BY tool_key HAVING SUM(calls) + SUM(blocked) + SUM(approvals) > 0
    ) h JOIN tools t ON t.environment_id = :env AND t.tool_key = h.tool_key ORDER BY t.tool_key`
  return (await sql.all<{ tool: string }>(text, { env: environmentId, from })).map(({ tool }) => tool)
}
