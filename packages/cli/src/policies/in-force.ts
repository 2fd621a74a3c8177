/** The deployed versions in each environment of a workspace. */
import { eachItem } from '@tacho/client/items.ts'
import type { DeployableKind } from '@tacho/contract/policies/deployment.ts'
import type { Workspace } from '@tacho/contract/tenants/workspace.ts'
import type { OperatorClient } from '../engine/operator-client.ts'
import { environmentsOf } from '../tenants/tenants.ts'

/** Keyed by prompt or policy id: `production 3, staging 4`. */
export async function inForce(
  client: OperatorClient,
  workspace: Workspace,
  kind: DeployableKind,
): Promise<Map<string, { environment: string; version: string }[]>> {
  const places = new Map<string, { environment: string; version: string }[]>()
  for (const { id: environmentId, name } of await environmentsOf(client, workspace)) {
    for await (const row of eachItem(client.listDeployments, { params: { environmentId } })) {
      if (row.kind !== kind) continue
      const known = places.get(row.id) ?? []
      known.push({ environment: name, version: row.version })
      places.set(row.id, known)
    }
  }
  return places
}

export function spokenPlaces(places: { environment: string; version: string }[] | undefined): string {
  return (places ?? []).map(({ environment, version }) => `${environment} ${version}`).join(', ')
}
