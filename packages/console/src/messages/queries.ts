import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { queryOptions } from '@tanstack/react-query'
import { api } from '../web/api.ts'

const REFRESH_MS = 15_000
const FIRST_CHECK_MS = 1_000

export const alertsQuery = (environmentId: string) =>
  queryOptions({
    queryKey: ['alerts', environmentId],
    queryFn: async () => (await api.listAlerts({ params: { environmentId } })).items,
    refetchInterval: ({ state }) =>
      state.data?.some(({ checkedAt }) => checkedAt === null) ? FIRST_CHECK_MS : REFRESH_MS,
  })

/** Names of the agents of the newest runs, by internal id. */
export const agentNamesQuery = (environmentId: string) =>
  queryOptions({
    queryKey: ['agent names', environmentId],
    queryFn: async ({ signal }) => {
      const query = { limit: LIMITS.operatorPageMax }
      const { items } = await api.listOperatorRuns({ params: { environmentId }, query }, { signal })
      return new Map(items.map(({ agent }) => [agent.id, agent.name]))
    },
    staleTime: 60_000,
  })
