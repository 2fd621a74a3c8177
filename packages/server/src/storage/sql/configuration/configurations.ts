import { read } from '../act.ts'
import { hash } from 'node:crypto'
import type { RuntimePolicy, RuntimePrompt } from '@tacho/contract/runtime-config.ts'
import type { OnError } from '@tacho/contract/words.ts'
import canonicalize from 'canonicalize'
import type { Configuration } from '../../deployments.ts'
import type { Sql } from '../sql.ts'

export const configurationsActs = read({ readConfiguration })

/** The revision is the SHA-256 of the canonical JSON (RFC 8785) of the rest, so clients can compute it too. */
function configurationOf(prompts: RuntimePrompt[], policies: RuntimePolicy[]): Configuration & { text: string } {
  const content = {
    prompts: prompts.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    policies: policies.toSorted((a, b) => (a.policyId < b.policyId ? -1 : 1)),
  }
  const revision = hash('sha256', canonicalize(content) ?? '')
  return { revision, text: JSON.stringify({ revision, ...content }) }
}

const EMPTY = configurationOf([], [])

/** Its text is null if `knownRevision` is current. */
async function readConfiguration(
  sql: Sql,
  environmentId: string,
  knownRevision: string | null,
): Promise<Configuration> {
  const revision = await readRevision(sql, environmentId)
  if (revision === knownRevision) return { revision, text: null }
  const text = 'SELECT body AS text FROM configurations WHERE environment_id = :env'
  const row = await sql.get<{ text: string }>(text, { env: environmentId })
  return { revision, text: row?.text ?? EMPTY.text }
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

export async function keepConfiguration(sql: Sql, environmentId: string, publication: number): Promise<string> {
  const prompts = await sql.all<RuntimePrompt>(
    `SELECT p.id AS "promptId", p.name, v.id AS "versionId", CAST(v.number AS TEXT) AS version, v.content,
      v.content_hash AS "contentHash"
      FROM deployments d JOIN environments e ON e.id = d.environment_id
      JOIN prompts p ON p.workspace_id = e.workspace_id AND p.id = d.item_id
      JOIN prompt_versions v ON v.workspace_id = p.workspace_id AND v.prompt_id = p.id AND v.number = d.version
      WHERE d.environment_id = :env AND d.kind = 'prompt'`,
    { env: environmentId },
  )
  const stored = await sql.all<Omit<RuntimePolicy, 'onError'> & { onError: OnError | null }>(
    `SELECT v.policy_id AS "policyId", v.name, v.description, CAST(v.number AS TEXT) AS version, v.condition,
      v.severity, v.action, v.on_error AS "onError"
      FROM deployments d JOIN environments e ON e.id = d.environment_id
      JOIN policy_versions v ON v.workspace_id = e.workspace_id AND v.policy_id = d.item_id AND v.number = d.version
      WHERE d.environment_id = :env AND d.kind = 'policy'`,
    { env: environmentId },
  )
  // Absent in versions that do not say it: their text and revision stay as they were.
  const policies = stored.map(({ onError, ...policy }) => (onError === null ? policy : { ...policy, onError }))
  const { revision, text } = configurationOf(prompts, policies)
  const keep = `UPDATE configurations SET publication = :publication, revision = :revision, body = :text
    WHERE environment_id = :env`
  await sql.run(keep, { publication, revision, text, env: environmentId })
  return revision
}
