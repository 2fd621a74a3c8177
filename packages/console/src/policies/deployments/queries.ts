/** What is deployed where, and what changed. */
import type { DeployableKind, Deployment } from '@tacho/contract/policies/deployment.ts'
import { allItems } from '@tacho/client/items.ts'
import { queryOptions, useQueries, useQuery } from '@tanstack/react-query'
import { api } from '../../web/api.ts'
import { environmentsQuery, usePages } from '../../web/queries.ts'

export const DAMAGED_DEPLOYMENT = 'It changed on the disk. Deploy it again'

export interface Item {
  kind: DeployableKind
  id: string
}

/** One environment of the workspace, with the version of the item that is in force there. */
export interface InForce {
  environment: { id: string; name: string }
  deployment: Deployment | null
}

const deploymentsQuery = (environmentId: string) =>
  queryOptions({
    queryKey: ['deployments', environmentId, 'now'],
    queryFn: () => allItems(api.listDeployments, { params: { environmentId }, query: { limit: 200 } }),
  })

/** An environment and what is deployed in it. */
export interface Deployed {
  environment: InForce['environment']
  items: Deployment[]
}

/** For every environment of the workspace, what is deployed. */
export function useDeployments(workspaceId: string): Deployed[] {
  const { data: environments = [] } = useQuery(environmentsQuery(workspaceId))
  return useQueries({
    queries: environments.map(({ id }) => deploymentsQuery(id)),
    combine: (results) =>
      environments.map((environment, index) => ({ environment, items: results[index]?.data ?? [] })),
  })
}

export function useInForce(workspaceId: string, item: Item): InForce[] {
  return inForce(useDeployments(workspaceId), item)
}

export function inForce(deployed: readonly Deployed[], { kind, id }: Item): InForce[] {
  return deployed.map(({ environment, items }) => ({
    environment,
    deployment: items.find((one) => one.kind === kind && one.id === id) ?? null,
  }))
}

/** Changes of one item, or of all, in an environment, newest first. */
export function useDeploymentChanges(environmentId: string, item?: Item) {
  return usePages({
    queryKey: ['deployments', environmentId, 'changes', item ?? null],
    read: (cursor, signal) =>
      api.listDeploymentChanges({ params: { environmentId }, query: { ...item, limit: 50, cursor } }, { signal }),
  })
}
