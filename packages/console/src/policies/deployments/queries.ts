/** Queries of deployments and their changes. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { DeployableKind, Deployment } from '@tacho/contract/policies/deployment.ts'
import type { Stop } from '@tacho/contract/policies/stop.ts'
import { allItems } from '@tacho/client/items.ts'
import { queryOptions, useQueries, useQuery } from '@tanstack/react-query'
import { api } from '../../web/api.ts'
import { environmentsQuery, usePages } from '../../web/queries.ts'

export const DAMAGED_DEPLOYMENT = 'It changed on the disk. Deploy it again'

export interface Item {
  kind: DeployableKind
  id: string
}

/** An environment of the workspace, with the version of the item that is in force there. */
export interface InForce {
  environment: { id: string; name: string }
  deployment: Deployment | null
  /** Whether it was read; if not, `deployment` has no meaning. */
  isRead: boolean
}

const IN_FORCE_MS = 15_000

export const deploymentsQuery = (environmentId: string) =>
  queryOptions({
    queryKey: ['deployments', environmentId, 'now'],
    queryFn: () => allItems(api.listDeployments, { params: { environmentId }, query: { limit: 200 } }),
    // Poll, because other people deploy and roll back too.
    refetchInterval: IN_FORCE_MS,
  })

/** An environment and what is deployed in it. */
export interface Deployed {
  environment: InForce['environment']
  items: Deployment[]
  isRead: boolean
}

export const toolLabelsQuery = (environmentId: string) =>
  queryOptions({
    queryKey: ['tool labels', environmentId],
    queryFn: ({ signal }) => api.readToolLabels({ params: { environmentId } }, { signal }),
  })

/** Deployments of every environment of the workspace. */
export function useDeployments(workspaceId: string): Deployed[] {
  const { data: environments = [] } = useQuery(environmentsQuery(workspaceId))
  return useQueries({
    queries: environments.map(({ id }) => deploymentsQuery(id)),
    combine: (results) =>
      environments.map((environment, index) => {
        const items = results[index]?.data
        return { environment, items: items ?? [], isRead: items !== undefined }
      }),
  })
}

export function useInForce(workspaceId: string, item: Item): InForce[] {
  return inForce(useDeployments(workspaceId), item)
}

export function inForce(deployed: readonly Deployed[], { kind, id }: Item): InForce[] {
  return deployed.map(({ environment, items, isRead }) => ({
    environment,
    isRead,
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

export const stopsKey = (environmentId: string) => ['stops', environmentId]

const STOPS_REFRESH_MS = 10_000
const CONFIRMING_MS = 2_000

/** Active stops, newest first, and how many clients have confirmed the configuration that contains them. */
export const stopsQuery = (environmentId: string) =>
  queryOptions({
    queryKey: [...stopsKey(environmentId), 'in effect'],
    queryFn: ({ signal }) => api.listStops({ params: { environmentId }, query: { limit: LIMITS.stops } }, { signal }),
    refetchInterval: ({ state: { data } }) =>
      data && data.items.length > 0 && data.clients.unconfirmed > 0 ? CONFIRMING_MS : STOPS_REFRESH_MS,
  })

/** Stops that affected a run while it ran, newest first, including ended ones. */
export const runStopsQuery = (environmentId: string, runId: string) =>
  queryOptions({
    queryKey: [...stopsKey(environmentId), 'of run', runId],
    queryFn: () =>
      allItems(api.listStops, { params: { environmentId }, query: { runId, state: 'all' as const, limit: 200 } }),
    refetchInterval: STOPS_REFRESH_MS,
  })

/** The target of a stop, as the beginning of a sentence. */
export const stopName = ({ scope, target }: Pick<Stop, 'scope' | 'target'>): string =>
  scope === 'environment' ? 'This environment' : `${scope.charAt(0).toUpperCase()}${scope.slice(1)} ${target}`
