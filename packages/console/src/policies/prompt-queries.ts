import { allItems } from '@tacho/client/items.ts'
import { queryOptions } from '@tanstack/react-query'
import { api } from '../web/api.ts'
import { usePages } from '../web/pages.ts'

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

/** Null: no prompt has this name. */
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
