/** Queries of the pages of policies and prompts. */
import { queryOptions, useQuery } from '@tanstack/react-query'
import type { Simulation } from '@tacho/contract/policies/simulation.ts'
import { allItems } from '@tacho/client/items.ts'
import { api } from '../web/api.ts'
import { usePages } from '../web/queries.ts'

const PROGRESS_MS = 500
const LIFE_MS = 15_000

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

/** A version never changes. */
export const policyVersionQuery = (workspaceId: string, policyId: string, version: string) =>
  queryOptions({
    queryKey: ['policies', workspaceId, policyId, 'version', version],
    queryFn: ({ signal }) => api.readPolicyVersion({ params: { workspaceId, policyId, version } }, { signal }),
    staleTime: Infinity,
  })

const isOver = ({ status }: Simulation): boolean => status !== 'QUEUED' && status !== 'RUNNING'

/** A simulation, polled until it ends. */
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

/**
 * Requests and blocked calls of the policy in the last 7 days, with the decisions. `asked` is null if there were none.
 */
export function useAnswers(environmentId: string, policyId: string) {
  return useQuery({
    queryKey: ['approvals', environmentId, 'answers', policyId],
    queryFn: async ({ signal }) => {
      const query = { params: { environmentId }, query: { policyId } }
      const { items, blocks } = await api.listAskingPolicies(query, { signal })
      return { asked: items[0] ?? null, blocks }
    },
    refetchInterval: LIFE_MS,
  })
}

/** Issues about calls that the policy blocked. */
export function useBlocked(environmentId: string, policyId: string) {
  return useQuery({
    queryKey: ['issues', environmentId, 'blocked by', policyId],
    queryFn: async ({ signal }) => {
      const query = { q: policyId, detectionType: 'TOOL_BLOCKED', limit: 50 }
      const { items } = await api.listIssues({ params: { environmentId }, query }, { signal })
      // The search also finds issues that only mention the policy.
      return items.filter(({ title }) => title.includes(` by ${policyId}`))
    },
    refetchInterval: LIFE_MS,
  })
}

export const promptsQuery = (workspaceId: string, hasArchived = false) =>
  queryOptions({
    queryKey: ['prompts', workspaceId, 'list', hasArchived],
    queryFn: () => {
      const query = { limit: 200, ...(hasArchived && { archived: 'true' as const }) }
      return allItems(api.listPrompts, { params: { workspaceId }, query })
    },
  })

export const promptQuery = (workspaceId: string, promptId: string) =>
  queryOptions({
    queryKey: ['prompts', workspaceId, promptId],
    queryFn: ({ signal }) => api.readPrompt({ params: { workspaceId, promptId } }, { signal }),
  })

/** Finds a prompt by name; null if there is none. */
export const promptOfNameQuery = (workspaceId: string, name: string) =>
  queryOptions({
    queryKey: ['prompts', workspaceId, 'of name', name],
    queryFn: async ({ signal }) => {
      const { items } = await api.listPrompts({ params: { workspaceId }, query: { name, limit: 1 } }, { signal })
      return items[0] ?? null
    },
  })

export const promptResultsQuery = (environmentId: string, promptId: string) =>
  queryOptions({
    queryKey: ['prompt results', environmentId, promptId],
    queryFn: ({ signal }) => api.readPromptResults({ params: { environmentId, promptId } }, { signal }),
    refetchInterval: 60_000,
  })

/** A version never changes. */
export const promptVersionQuery = (workspaceId: string, promptId: string, version: string) =>
  queryOptions({
    queryKey: ['prompts', workspaceId, promptId, 'version', version],
    queryFn: ({ signal }) => api.readPromptVersion({ params: { workspaceId, promptId, version } }, { signal }),
    staleTime: Infinity,
  })

export function usePromptVersions(workspaceId: string, promptId: string) {
  return usePages({
    queryKey: ['prompts', workspaceId, promptId, 'versions'],
    read: (cursor, signal) =>
      api.listPromptVersions({ params: { workspaceId, promptId }, query: { limit: 50, cursor } }, { signal }),
  })
}
