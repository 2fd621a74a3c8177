/** The queries of the overview: the newest rows of each kind, and counts that end at one page. */
import { allItems } from '@tacho/client/items.ts'
import { keepPreviousData, useQueries, useQuery } from '@tanstack/react-query'
import { api } from '../api.ts'
import { STATUSES } from '../runs/search.ts'
import { addCosts, costsOf, NO_COSTS, wholeCost, type Costs } from '../ui/cost.tsx'

const REFRESH_MS = 5_000
const USAGE_REFRESH_MS = 30_000
const HOUR_MS = 3_600_000
const PAGE = 200

/** At least so many; exactly so many unless there is more. */
export interface Count {
  count: number
  isMore: boolean
}

const countOf = ({ items, nextCursor }: { items: unknown[]; nextCursor: string | null }): Count => ({
  count: items.length,
  isMore: nextCursor !== null,
})

export function useWaitingApprovals(environmentId: string) {
  return useQuery({
    queryKey: ['overview', 'approvals', environmentId],
    queryFn: async () => {
      const page = await api.listApprovals({ params: { environmentId }, query: { status: 'PENDING', limit: PAGE } })
      return { ...countOf(page), items: page.items.slice(0, 5) }
    },
    refetchInterval: REFRESH_MS,
  })
}

export function useOpenIssues(environmentId: string) {
  return useQuery({
    queryKey: ['overview', 'issues', environmentId],
    queryFn: async () => {
      const page = await api.listIssues({ params: { environmentId }, query: { state: 'OPEN', limit: PAGE } })
      return { ...countOf(page), items: page.items.slice(0, 5) }
    },
    refetchInterval: REFRESH_MS,
  })
}

/** Runs that started in the last 24 hours, counted by status. */
export function useRunsOfDay(environmentId: string) {
  return useQueries({
    queries: STATUSES.map((status) => ({
      queryKey: ['overview', 'runs', environmentId, status],
      queryFn: async () => {
        const from = new Date(Date.now() - 24 * HOUR_MS).toISOString()
        return countOf(await api.listOperatorRuns({ params: { environmentId }, query: { status, from, limit: PAGE } }))
      },
      refetchInterval: REFRESH_MS,
    })),
    combine: (results) => STATUSES.map((status, index) => ({ status, count: results[index]?.data ?? null })),
  })
}

export function useNewestRuns(environmentId: string) {
  return useQuery({
    queryKey: ['overview', 'newest runs', environmentId],
    queryFn: () => api.listOperatorRuns({ params: { environmentId }, query: { limit: 8 } }),
    refetchInterval: REFRESH_MS,
  })
}

export interface AgentUsage {
  id: string
  name: string
  events: number
  tokens: number
  cost: Costs
}

/** Usage of the last 24 hours, by agent, the dearest first. */
export function useUsageOfDay(environmentId: string) {
  return useQuery({
    queryKey: ['overview', 'usage', environmentId],
    queryFn: async () => {
      const now = Date.now()
      const [from, to] = [new Date(now - 23 * HOUR_MS).toISOString(), new Date(now).toISOString()]
      const hours = await allItems(api.readUsage, { params: { environmentId }, query: { from, to, limit: PAGE } })
      const agents = new Map<string, AgentUsage>()
      for (const hour of hours) {
        const { agent, events, usage } = hour
        const sum = agents.get(agent.id) ?? { ...agent, events: 0, tokens: 0, cost: NO_COSTS }
        sum.events += events
        sum.tokens += usage.totalTokens
        sum.cost = addCosts(sum.cost, costsOf(hour))
        agents.set(agent.id, sum)
      }
      return [...agents.values()].sort((a, b) => wholeCost(b.cost) - wholeCost(a.cost) || b.tokens - a.tokens)
    },
    refetchInterval: USAGE_REFRESH_MS,
    placeholderData: keepPreviousData,
  })
}
