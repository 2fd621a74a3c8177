/**
 * Creates and removes the demo's environment. Everything that a demo makes is in this environment, or in the workspace
 * under a demo name and deployed only here. So it does not affect real agents: elsewhere, its approvals would wait for
 * real approvers, and its runs would count in alerts and budgets.
 */
import { allItems } from '@tacho/client/items.ts'
import type { Environment, Workspace } from '@tacho/contract/tenants/workspace.ts'
import { DEMO_ENVIRONMENT } from '@tacho/contract/engine/words.ts'
import { orNull } from '../../engine/find-by-id.ts'
import { Refused, type OperatorClient } from '../../engine/operator-client.ts'
import { environmentsOf, type Place } from '../../tenants/tenants.ts'
import { failed } from '../../engine/stop.ts'

export const DEMO_PROMPT = 'demo-shop-support'
export const REFUND_LIMIT = 'demo-refund-limit'
export const REFUND_CEILING = 'demo-refund-ceiling'

/** Lifetime of the key, so that the key of a killed demo expires. */
const KEY_MS = 30 * 86_400_000

async function findDemo(client: OperatorClient, workspace: Workspace): Promise<Environment | null> {
  const environments = await environmentsOf(client, workspace)
  return environments.find(({ name }) => name === DEMO_ENVIRONMENT) ?? null
}

export async function takePlace(client: OperatorClient, workspace: Workspace): Promise<Place> {
  const name = `${workspace.name}/${DEMO_ENVIRONMENT}`
  const params = { workspaceId: workspace.id }
  const demoPlace = await findDemo(client, workspace)
  if (demoPlace !== null) return { workspace, environment: demoPlace, name }
  const environment = await client
    .createEnvironment({ params, body: { name: DEMO_ENVIRONMENT } })
    .catch((error: unknown) => {
      if (!isRefusedWith(error, 'conflict')) throw error
      throw failed(`${name} is archived. Restore it, or run \`tacho demo --remove\`.`)
    })
  await client.switchSearch({ params: { environmentId: environment.id }, body: { enabled: true } })
  return { workspace, environment, name }
}

/** Calls `use` with an API key of the environment, and revokes the key afterwards. */
export async function withKey(
  client: OperatorClient,
  { environment }: Place,
  use: (apiKey: string) => Promise<void>,
): Promise<void> {
  const params = { environmentId: environment.id }
  const expiresAt = new Date(Date.now() + KEY_MS).toISOString()
  const body = { name: 'tacho demo', scopes: ['events:write' as const, 'policies:read' as const], expiresAt }
  const { id, key } = await client.createApiKey({ params, body })
  try {
    await use(key)
  } finally {
    await client.revokeApiKey({ params: { ...params, keyId: id } })
  }
}

/** Archives the demo's items, and requests the deletion of its environment. Null: there is no demo. */
export async function removeDemo(client: OperatorClient, workspace: Workspace): Promise<Environment | null> {
  const all = await environmentsOf(client, workspace, true)
  const demoEnvironment = all.find(({ name }) => name === DEMO_ENVIRONMENT)
  if (!demoEnvironment) return null
  const params = { environmentId: demoEnvironment.id }
  const deployed = await allItems(client.listDeployments, { params })
  if (deployed.length > 0) {
    const items = deployed.map(({ kind, id }) => ({ kind, id, version: null }))
    await client.deploy({ params, body: { items, note: 'tacho demo --remove' } })
  }
  await archiveItems(client, workspace.id)
  // Frees the name for the next demo. The data stays until the environment is deleted.
  await client.renameEnvironment({ params, body: { name: `${DEMO_ENVIRONMENT}-${demoEnvironment.id.slice(-12)}` } })
  const archived = await client.archiveEnvironment({ params })
  return client.deleteEnvironment({ params }).catch((error: unknown) => {
    if (isRefusedWith(error, 'forbidden')) return archived
    throw error
  })
}

async function archiveItems(client: OperatorClient, workspaceId: string): Promise<void> {
  const params = { workspaceId }
  // A conflict means that somebody deployed the item elsewhere, so it stays.
  const ifUnused = (error: unknown) => {
    if (!isRefusedWith(error, 'conflict')) throw error
  }
  for (const { promptId } of (await client.listPrompts({ params, query: { name: DEMO_PROMPT } })).items)
    await client.archivePrompt({ params: { workspaceId, promptId } }).catch(ifUnused)
  for (const policyId of [REFUND_LIMIT, REFUND_CEILING])
    await orNull(client.archivePolicy({ params: { workspaceId, policyId } }).catch(ifUnused))
}

function isRefusedWith(error: unknown, code: 'conflict' | 'forbidden'): boolean {
  return error instanceof Refused && error.result.code === code
}
