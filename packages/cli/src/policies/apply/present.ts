/** Reads the state of everything that the manifest names. */
import { allItems } from '@tacho/client/items.ts'
import type { Workspace } from '@tacho/contract/tenants/workspace.ts'
import type { OperatorClient } from '../../engine/operator-client.ts'
import { environmentsOf } from '../../tenants/tenants.ts'
import type { Manifest } from './manifest.ts'
import type { Present, PresentEnvironment } from './plan.ts'

export async function readPresent(client: OperatorClient, workspace: Workspace, manifest: Manifest): Promise<Present> {
  const params = { workspaceId: workspace.id }
  // An archived one keeps its name.
  const query = { archived: 'true' } as const
  const prompts = await allItems(client.listPrompts, { params, query })
  const policies = await allItems(client.listPolicies, { params, query })
  const environments = new Map<string, PresentEnvironment>()
  for (const { id, name } of await environmentsOf(client, workspace)) {
    if (!manifest.environments.has(name)) continue
    environments.set(name, { id, inForce: await allItems(client.listDeployments, { params: { environmentId: id } }) })
  }
  return {
    prompts: new Map(prompts.map((prompt) => [prompt.name, prompt])),
    policies: new Map(policies.map((policy) => [policy.policyId, policy])),
    environments,
  }
}
