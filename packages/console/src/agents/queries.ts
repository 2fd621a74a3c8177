/** What the page of an agent reads. An agent is named by its external id, or by its name if it has none. */
import { allItems } from '@tacho/client/items.ts'
import type { Agent } from '@tacho/contract/operator/agent.ts'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api } from '../api.ts'

const REFRESH_MS = 10_000
const RUNS_READ = 200
const LISTED = 10
const DAY_MS = 86_400_000
export const DAYS_SHOWN = 30

export function useAgentRuns(environmentId: string, agent: string) {
  return useQuery({
    queryKey: ['runs', environmentId, 'of agent', agent],
    queryFn: ({ signal }) =>
      api.listOperatorRuns({ params: { environmentId }, query: { agent, limit: RUNS_READ } }, { signal }),
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
  })
}

/** Prompt and number of the versions used in the days shown, by version id. */
export function useVersionNames(environmentId: string): ReadonlyMap<string, string> {
  const { data } = useQuery({
    queryKey: ['names of prompt versions', environmentId],
    queryFn: async () => {
      const points = await allItems(api.readUsagePoints, {
        params: { environmentId },
        query: { ...daysShown(), by: 'promptVersion', step: 'day' },
      })
      return new Map(points.flatMap(({ key, name }) => (name === null ? [] : [[key, name] as const])))
    },
    staleTime: 60_000,
  })
  return data ?? NO_NAMES
}

const NO_NAMES = new Map<string, string>()

function daysShown(): { from: string; to: string } {
  const to = Date.now()
  const from = Math.floor(to / DAY_MS) * DAY_MS - (DAYS_SHOWN - 1) * DAY_MS
  return { from: new Date(from).toISOString(), to: new Date(to).toISOString() }
}

/** As many days before them. */
function daysBefore(): { from: string; to: string } {
  const start = Date.parse(daysShown().from)
  return { from: new Date(start - DAYS_SHOWN * DAY_MS).toISOString(), to: new Date(start - 1).toISOString() }
}

/** Usage of the agent by day, and of the days before. `agentId`: its internal id. */
export function useAgentDays(environmentId: string, agentId: string | undefined) {
  return useQuery({
    queryKey: ['usage of agent', environmentId, agentId],
    queryFn: async () => {
      const query = { ...daysShown(), by: 'agent', step: 'day' } as const
      const [points, sums] = await Promise.all([
        allItems(api.readUsagePoints, { params: { environmentId }, query }),
        allItems(api.readUsagePoints, {
          params: { environmentId },
          query: { ...daysBefore(), by: 'agent', step: 'window' },
        }),
      ])
      const byDay = new Map(points.filter(({ key }) => key === agentId).map((point) => [Date.parse(point.from), point]))
      const days = Array.from({ length: DAYS_SHOWN }, (_, day) => {
        const start = Date.parse(query.from) + day * DAY_MS
        return { start, point: byDay.get(start) }
      })
      return { days, before: sums.find(({ key }) => key === agentId) }
    },
    enabled: agentId !== undefined,
    staleTime: 60_000,
  })
}

export function useAgentIssues(environmentId: string, agentId: string) {
  return useQuery({
    queryKey: ['issues', environmentId, 'of agent', agentId],
    queryFn: ({ signal }) =>
      api.listIssues({ params: { environmentId }, query: { agentId, state: 'OPEN', limit: LISTED } }, { signal }),
    refetchInterval: REFRESH_MS,
  })
}

export function useAgentApprovals(environmentId: string, agentId: string) {
  return useQuery({
    queryKey: ['approvals', environmentId, 'of agent', agentId],
    queryFn: ({ signal }) =>
      api.listApprovals({ params: { environmentId }, query: { agentId, limit: LISTED } }, { signal }),
    refetchInterval: REFRESH_MS,
  })
}

/** Which clients lost events of the agent in the days shown. `agentId`: its internal id. */
export function useAgentGaps(environmentId: string, agentId: string) {
  return useQuery({
    queryKey: ['lost events of agent', environmentId, agentId],
    queryFn: ({ signal }) => {
      const query = { ...daysShown(), by: 'client', agentId, limit: LISTED } as const
      return api.readCompleteness({ params: { environmentId }, query }, { signal })
    },
    staleTime: 60_000,
  })
}

const AGENTS_PAGE = 200
/** Bounds what a page reads. */
const MOST_AGENTS = 1_000

/** The agents that the service lists, archived ones too. */
export function useAgents(environmentId: string, isWanted = true) {
  return useQuery({
    queryKey: agentsKey(environmentId),
    queryFn: async ({ signal }) => {
      const agents: Agent[] = []
      let cursor: string | undefined
      do {
        const query = { archived: 'true', limit: AGENTS_PAGE, cursor } as const
        const page = await api.listAgents({ params: { environmentId }, query }, { signal })
        agents.push(...page.items)
        cursor = page.nextCursor ?? undefined
      } while (cursor !== undefined && agents.length < MOST_AGENTS)
      return agents
    },
    enabled: isWanted,
    refetchInterval: REFRESH_MS,
  })
}

export const agentsKey = (environmentId: string) => ['agents', environmentId]
