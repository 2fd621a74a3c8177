import type { Simulation } from '@tacho/contract/policies/simulation.ts'
import { allItems } from '@tacho/client/items.ts'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { api } from '../web/api.ts'
import { usePages } from '../web/pages.ts'

const PROGRESS_MS = 500

export const policiesQuery = (workspaceId: string, hasArchived = false) =>
  queryOptions({
    queryKey: ['policies', workspaceId, 'list', hasArchived],
    queryFn: () => {
      const query = { limit: 200, ...(hasArchived && { archived: 'true' as const }) }
      return allItems(api.listPolicies, { params: { workspaceId }, query })
    },
  })

export const policyQuery = (workspaceId: string, policyId: string) =>
  queryOptions({
    queryKey: ['policies', workspaceId, policyId],
    queryFn: ({ signal }) => api.readPolicy({ params: { workspaceId, policyId } }, { signal }),
  })

export function usePolicyVersions(workspaceId: string, policyId: string) {
  return usePages({
    queryKey: ['policies', workspaceId, policyId, 'versions'],
    read: (cursor, signal) =>
      api.listPolicyVersions({ params: { workspaceId, policyId }, query: { limit: 50, cursor } }, { signal }),
  })
}

const isOver = ({ status }: Simulation): boolean => status !== 'QUEUED' && status !== 'RUNNING'

/** A simulation, followed until it is over. */
export function useSimulation(environmentId: string, simulationId: string | null) {
  return useQuery({
    queryKey: ['simulation', environmentId, simulationId],
    queryFn: ({ signal }) =>
      api.readSimulation({ params: { environmentId, simulationId: simulationId ?? '' } }, { signal }),
    enabled: simulationId !== null,
    refetchInterval: ({ state }) => (state.data && isOver(state.data) ? false : PROGRESS_MS),
  })
}

/** The newest requests that this policy made. */
export function useAskedBy(environmentId: string, policyId: string) {
  return useQuery({
    queryKey: ['approvals', environmentId, 'of policy', policyId],
    queryFn: ({ signal }) =>
      api.listApprovals({ params: { environmentId }, query: { policyId, limit: 10 } }, { signal }),
  })
}
