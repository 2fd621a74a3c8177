/** Queries of the page of an agent. An agent is identified by the client's id, or by its name if it has no id. */
import { allItems } from '@tacho/client/items.ts'
import type { Agent } from '@tacho/contract/runs/agent.ts'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api } from '../../web/api.ts'
import { hoursBefore, hoursOf, hourTimes, stepsOf, timesOfRange, type Range, type Since } from '../../web/address.ts'

const REFRESH_MS = 10_000
const RUNS_READ = 200
const LISTED = 10
const AGENTS_READ = 200
/** The period of the page, if the address has none. */
export const AGENT_SINCE: Since = '30d'

/** The agent's newest runs in the range; without a range in the address, its newest runs ever. */
export function useAgentRuns(environmentId: string, agent: string, range: Range) {
  return useQuery({
    queryKey: ['runs', environmentId, 'of agent', agent, range],
    queryFn: ({ signal }) => {
      const query = { agent, ...timesOfRange(range, Date.now()), limit: RUNS_READ }
      return api.listOperatorRuns({ params: { environmentId }, query }, { signal })
    },
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
  })
}

/** Prompt name and number of the versions in use during the period, by version id. */
export function useVersionNames(environmentId: string, range: Range): ReadonlyMap<string, string> {
  const { data } = useQuery({
    queryKey: ['names of prompt versions', environmentId, range],
    queryFn: async () => {
      const window = hourTimes(hoursOf(range, AGENT_SINCE, Date.now()))
      const points = await allItems(api.readUsagePoints, {
        params: { environmentId },
        query: { ...window, by: 'promptVersion', step: 'window' },
      })
      return new Map(points.flatMap(({ key, name }) => (name === null ? [] : [[key, name] as const])))
    },
    staleTime: 60_000,
  })
  return data ?? NO_NAMES
}

const NO_NAMES = new Map<string, string>()

/** Usage of the agent by hour or day, and usage in the previous period. `agentId`: its internal id. */
export function useAgentUsage(environmentId: string, agentId: string, range: Range) {
  return useQuery({
    queryKey: ['usage of agent', environmentId, agentId, range],
    queryFn: async () => {
      const window = hoursOf(range, AGENT_SINCE, Date.now())
      const [points, sums] = await Promise.all([
        allItems(api.readUsagePoints, {
          params: { environmentId },
          query: { ...hourTimes(window), by: 'agent', ...stepsOf(window) },
        }),
        allItems(api.readUsagePoints, {
          params: { environmentId },
          query: { ...hourTimes(hoursBefore(window)), by: 'agent', step: 'window' },
        }),
      ])
      return {
        window,
        points: points.filter(({ key }) => key === agentId),
        before: sums.filter(({ key }) => key === agentId),
      }
    },
    staleTime: 60_000,
    placeholderData: keepPreviousData,
  })
}

/** Open issues, with the number and time of their detections in runs of this agent; null: unknown. */
export function useAgentIssues(environmentId: string, agentId: string) {
  return useQuery({
    queryKey: ['issues', environmentId, 'of agent', agentId],
    queryFn: async ({ signal }) => {
      const query = { agentId, state: 'OPEN', limit: LISTED } as const
      const { items } = await api.listIssues({ params: { environmentId }, query }, { signal })
      return Promise.all(
        items.map(async (issue) => {
          if (issue.affectedAgents === 1) return { ...issue, ofAgent: issue }
          const agents = { params: { environmentId, issueId: issue.id }, query: { limit: AGENTS_READ } }
          const affected = (await api.listAffectedAgents(agents, { signal })).items
          return { ...issue, ofAgent: affected.find((agent) => agent.agentId === agentId) ?? null }
        }),
      )
    },
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

/** Reads the clients that lost events of the agent in the shown period. `agentId`: its internal id. */
export function useAgentGaps(environmentId: string, agentId: string, range: Range) {
  return useQuery({
    queryKey: ['lost events of agent', environmentId, agentId, range],
    queryFn: ({ signal }) => {
      const window = hourTimes(hoursOf(range, AGENT_SINCE, Date.now()))
      const query = { ...window, by: 'client', agentId, limit: LISTED } as const
      return api.readCompleteness({ params: { environmentId }, query }, { signal })
    },
    staleTime: 60_000,
  })
}

const AGENTS_PAGE = 200
/** Maximum number of agents that a page reads. */
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
