/**
 * Executes a plan: first restores items and writes versions, then publishes once per environment. Fails if another operator
 * has changed an item since the plan was made. Applying again makes a new plan and continues.
 */
import { allItems } from '@tacho/client/items.ts'
import type { Workspace } from '@tacho/contract/tenants/workspace.ts'
import { Refused, type OperatorClient } from '../../engine/operator-client.ts'
import { printable } from '../../engine/output.ts'
import { failed } from '../../engine/stop.ts'
import type { Manifest } from './manifest.ts'
import {
  type DeploymentChange,
  type EndedShare,
  type Plan,
  type Present,
  type Write,
  type PresentEnvironment,
} from './plan.ts'
import { environmentsOf } from '../../tenants/tenants.ts'

export async function carryOut(
  client: OperatorClient,
  workspaceId: string,
  manifest: Manifest,
  present: Present,
  { restores, writes, deployments, labels }: Plan,
  note: string | null,
): Promise<void> {
  for (const { kind, name } of restores) {
    if (kind === 'policy') await client.restorePolicy({ params: { workspaceId, policyId: name } })
    else {
      const promptId = present.prompts.get(name)?.promptId ?? ''
      await client.restorePrompt({ params: { workspaceId, promptId } })
    }
  }
  const created = new Map<string, string>()
  for (const write of writes) {
    if (write.kind === 'policy') await writePolicy(client, workspaceId, manifest, write, note)
    else {
      const known = present.prompts.get(write.name)?.promptId ?? null
      created.set(write.name, await writePrompt(client, workspaceId, known, manifest, write, note))
    }
  }
  const idOf = ({ name, id }: DeploymentChange) => id ?? created.get(name) ?? ''
  for (const { environment, environmentId, changes } of deployments) {
    const damaged = damagedIn(present.environments.get(environment))
    // Two passes: a publication changes a prompt only once, and a share requires that its stable version is in force.
    for (const hasShare of [false, true]) {
      const parts = changes.filter(({ share }) => (share !== undefined) === hasShare)
      const items = parts.map((change) => ({
        kind: change.kind,
        id: idOf(change),
        version: change.to,
        // The version that the plan showed. For the server, a damaged version counts as none.
        ...(!damaged.has(keyOf(change)) && { replaces: change.from }),
        ...(change.share !== undefined && { share: change.share }),
      }))
      if (items.length === 0) continue
      try {
        await client.deploy({ params: { environmentId }, body: { items, note } })
      } catch (error) {
        throw (await overtakenFailure(client, environmentId, parts, error, environment)) ?? error
      }
    }
  }
  for (const { environmentId, rules } of labels) {
    await client.changeToolLabels({ params: { environmentId }, body: { labels: rules } })
  }
}

const keyOf = ({ kind, name }: Pick<DeploymentChange, 'kind' | 'name'>): string => `${kind} ${name}`

const damagedIn = (environment: PresentEnvironment | undefined): Set<string> =>
  new Set(environment?.inForce.filter(({ damaged }) => damaged).map(keyOf))

/**
 * An error that names what another person deployed after the plan was made. Null: the deployment failed for another
 * reason.
 */
async function overtakenFailure(
  client: OperatorClient,
  environmentId: string,
  changes: readonly DeploymentChange[],
  error: unknown,
  environment: string,
) {
  if (!(error instanceof Refused) || error.result.code !== 'conflict') return null
  const inForce = await allItems(client.listDeployments, { params: { environmentId } })
  const versions = new Map(inForce.map((row) => [keyOf(row), row.version]))
  const moved = changes.flatMap((change) => {
    const now = versions.get(keyOf(change)) ?? null
    if (now === change.from) return []
    const [planned, actual] = [change.from, now].map((version) =>
      version === null ? 'no version' : `version ${version}`,
    )
    return [`${actual} of ${change.kind} ${printable(change.name)} is in force, not ${planned}`]
  })
  if (moved.length === 0) return null
  return failed(
    `Environment ${printable(environment)} is no longer as in the plan: ${moved.join('; ')}. That deployment was refused: apply again for a new plan.`,
  )
}

/** Writes a version of a prompt. Returns the prompt's id. */
async function writePrompt(
  client: OperatorClient,
  workspaceId: string,
  known: string | null,
  { prompts }: Manifest,
  { name, version }: Write,
  note: string | null,
): Promise<string> {
  const content = prompts.get(name)?.content ?? ''
  if (known === null) {
    const { promptId } = await client.createPrompt({ params: { workspaceId }, body: { name, content, note } })
    return promptId
  }
  const params = { workspaceId, promptId: known }
  const body = { content, note, follows: before(version) }
  const saved = await client.createPromptVersion({ params, body })
  assertVersion('prompt', name, saved.version, version)
  return known
}

async function writePolicy(
  client: OperatorClient,
  workspaceId: string,
  { policies }: Manifest,
  { name: policyId, version, changed }: Write,
  note: string | null,
): Promise<void> {
  const wanted = policies.get(policyId)
  if (wanted === undefined) return
  const { place: _, saysOnError: __, ...wantedFields } = wanted
  // An empty text removes the template of the previous version.
  const policyFields = { ...wantedFields, template: wanted.template ?? '', note }
  if (changed === null) {
    await client.createPolicy({ params: { workspaceId }, body: { policyId, ...policyFields } })
    return
  }
  const params = { workspaceId, policyId }
  const saved = await client.createPolicyVersion({ params, body: { ...policyFields, follows: before(version) } })
  assertVersion('policy', policyId, saved.version, version)
}

function before(version: string): string {
  return String(Number(version) - 1)
}

/** Fails unless the written version is the planned one, because environments must get exactly the planned versions. */
function assertVersion(kind: string, name: string, written: string, planned: string): void {
  if (written === planned) return
  throw failed(`${kind} ${name} was changed by someone else (version ${written}, not ${planned}): apply again.`)
}

/** Reads the state of everything that the manifest names. */

export async function readPresent(client: OperatorClient, workspace: Workspace, manifest: Manifest): Promise<Present> {
  const params = { workspaceId: workspace.id }
  // Read archived items too, because they keep their names.
  const query = { archived: 'true' } as const
  const prompts = await allItems(client.listPrompts, { params, query })
  const policies = await allItems(client.listPolicies, { params, query })
  const environments = new Map<string, PresentEnvironment>()
  for (const { id, name } of await environmentsOf(client, workspace)) {
    if (!manifest.environments.has(name)) continue
    const of = { params: { environmentId: id } }
    const inForce = await allItems(client.listDeployments, of)
    const labels = manifest.labels === null ? {} : { labels: (await client.readToolLabels(of)).labels }
    const endedShares = await readEnded(client, id, manifest, name, inForce)
    environments.set(name, { id, inForce, endedShares, ...labels })
  }
  return {
    prompts: new Map(prompts.map((prompt) => [prompt.name, prompt])),
    policies: new Map(policies.map((policy) => [policy.policyId, policy])),
    environments,
  }
}

/** Reads how shares ended that are in the file but do not run, unless their items changed since. */
async function readEnded(
  client: OperatorClient,
  environmentId: string,
  { environments }: Manifest,
  environment: string,
  inForce: PresentEnvironment['inForce'],
): Promise<Map<string, EndedShare>> {
  const ended = new Map<string, EndedShare>()
  for (const [name, { share }] of environments.get(environment)?.prompts ?? []) {
    const row = inForce.find((one) => one.kind === 'prompt' && one.name === name)
    if (!share || !row || row.share) continue
    const query = { kind: 'prompt' as const, id: row.id, limit: 1 }
    const [newest] = (await client.listDeploymentChanges({ params: { environmentId }, query })).items
    if (newest?.share?.percent === 0) ended.set(name, { version: newest.share.version, by: newest.by })
  }
  return ended
}
