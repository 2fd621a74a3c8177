/** The queries of the overview: the newest rows of each kind, counts that end at one page, and the usage of the day. */
import { allItems } from '@tacho/client/items.ts'
import type { OperatorRunsQuery } from '@tacho/contract/operator/run.ts'
import type { UsagePoint } from '@tacho/contract/operator/usage.ts'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api } from '../api.ts'
import { outcomesOf, type Outcomes } from '../runs/outcomes.ts'
import { costsOf, wholeCost } from '../ui/costs.ts'

const REFRESH_MS = 5_000
const DAY_REFRESH_MS = 15_000
export const HOUR_MS = 3_600_000
const HOURS = 24
const RUNS_COUNTED = 50
const RUNS_SHOWN = 3
const PAGE = 200
/** LIMITS.usagePointsPage, which is in a larger file. */
const POINTS_PAGE = 2_000

/** `isMore`: there are more than `count`. */
export interface Count {
  count: number
  isMore: boolean
}

export function countText({ count, isMore }: Count): string {
  return isMore ? `${count}+` : String(count)
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
      const returned = page.items.filter(({ regressions }) => regressions > 0)
      return { ...countOf(page), items: page.items.slice(0, 5), returned }
    },
    refetchInterval: REFRESH_MS,
  })
}

/** Runs of the last 24 hours that a person should look at. */
export function useRunsThat(environmentId: string, filter: Pick<OperatorRunsQuery, 'activity' | 'completeness'>) {
  return useQuery({
    queryKey: ['overview', 'runs that', environmentId, filter],
    queryFn: async ({ signal }) => {
      const from = new Date(Date.now() - HOURS * HOUR_MS).toISOString()
      const query = { ...filter, from, limit: RUNS_COUNTED }
      const page = await api.listOperatorRuns({ params: { environmentId }, query }, { signal })
      return { ...countOf(page), items: page.items.slice(0, RUNS_SHOWN) }
    },
    refetchInterval: DAY_REFRESH_MS,
  })
}

export function useNewestRuns(environmentId: string) {
  return useQuery({
    queryKey: ['overview', 'newest runs', environmentId],
    queryFn: () => api.listOperatorRuns({ params: { environmentId }, query: { limit: 8 } }),
    refetchInterval: REFRESH_MS,
  })
}

export interface Hour {
  /** Milliseconds. */
  from: number
  /** Counts of the runs that started in this hour. */
  outcomes: Outcomes
}

/** The current hour and the 23 before it: runs by hour, and the agents that recorded something, the dearest first. */
export function useDay(environmentId: string) {
  return useQuery({
    queryKey: ['overview', 'day', environmentId],
    queryFn: async ({ signal }) => {
      const to = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
      const start = to - (HOURS - 1) * HOUR_MS
      const from = new Date(start).toISOString()
      // Latencies of hours cannot be added up, so the server sums up the whole time too.
      const read = (step: 'hour' | 'window', time = { from: start, to }) =>
        allItems((input) => api.readUsagePoints(input, { signal }), {
          params: { environmentId },
          query: {
            from: new Date(time.from).toISOString(),
            to: new Date(time.to).toISOString(),
            by: 'agent' as const,
            step,
            limit: POINTS_PAGE,
          },
        })
      const dayBefore = { from: start - HOURS * HOUR_MS, to: start - HOUR_MS }
      const [points, agents, earlier] = await Promise.all([read('hour'), read('window'), read('window', dayBefore)])
      const byHour = Map.groupBy(points, (point) => Date.parse(point.from))
      const hours = Array.from({ length: HOURS }, (_, hour): Hour => {
        const time = start + hour * HOUR_MS
        return { from: time, outcomes: outcomesOf(byHour.get(time) ?? []) }
      })
      const cost = (point: UsagePoint) => wholeCost(costsOf(point))
      agents.sort((a, b) => cost(b) - cost(a) || b.usage.totalTokens - a.usage.totalTokens || b.runs - a.runs)
      return { from, hours, outcomes: outcomesOf(agents), before: outcomesOf(earlier), agents }
    },
    refetchInterval: DAY_REFRESH_MS,
    placeholderData: keepPreviousData,
  })
}
