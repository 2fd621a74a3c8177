/** What is deployed where, and what changed. */
import type { DeployableKind, Deployment } from '@tacho/contract/operator/deployment.ts'
import { allItems } from '@tacho/client/items.ts'
import { queryOptions, useQueries, useQuery } from '@tanstack/react-query'
import { api } from '../api.ts'
import { environmentsQuery } from '../queries.ts'
import { usePages } from '../ui/pages.ts'

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

/** For every environment of the workspace, what is deployed. */
export function useDeployments(workspaceId: string): { environment: InForce['environment']; items: Deployment[] }[] {
  const { data: environments = [] } = useQuery(environmentsQuery(workspaceId))
  return useQueries({
    queries: environments.map(({ id }) => deploymentsQuery(id)),
    combine: (results) =>
      environments.map((environment, index) => ({ environment, items: results[index]?.data ?? [] })),
  })
}

export function useInForce(workspaceId: string, { kind, id }: Item): InForce[] {
  return useDeployments(workspaceId).map(({ environment, items }) => ({
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
