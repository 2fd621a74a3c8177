/** The queries of the overview: the newest items of each kind, counts up to one page, and the usage of a period. */
import { allItems } from '@tacho/client/items.ts'
import type { ApprovalCard } from '@tacho/contract/approvals/operator-approval.ts'
import type { OperatorRunsQuery } from '@tacho/contract/runs/operator-run.ts'
import type { UsagePoint } from '@tacho/contract/runs/usage.ts'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api } from '../../web/api.ts'
import { needsPerson } from '../../approvals/caller-state.tsx'
import { outcomesOf, type Outcomes } from '../../web/ui/chart-series.ts'
import { costsOf, wholeCost } from '../../web/text/costs.ts'
import {
  hoursBefore,
  hoursOf,
  hourTimes,
  runsRange,
  stepAt,
  stepsOf,
  timesOfRange,
  type HourWindow,
  type Range,
  type Since,
} from '../../web/address.ts'
import { alikeIssues, areDearer, changedAt, costSums, dearerAgents, deployedThen, mean } from './verdicts.ts'

const REFRESH_MS = 5_000
const DAY_REFRESH_MS = 15_000
const SLOW_REFRESH_MS = 60_000
/** The period of the page, if its address has none. */
export const OVERVIEW_SINCE: Since = '24h'
const RUNS_COUNTED = 50
const RUNS_SHOWN = 3
const KINDS_SHOWN = 6
const PAGE = 200
/** LIMITS.usagePointsPage. Importing the limits would make the page larger. */
const POINTS_PAGE = 2_000

/** `isMore`: there are more items than `count`. */
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
      const items = page.items.filter(needsPerson)
      return { ...countOf({ ...page, items }), items: items.slice(0, 5) }
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
      return { ...countOf(page), kinds: alikeIssues(page.items).slice(0, KINDS_SHOWN), returned }
    },
    refetchInterval: REFRESH_MS,
  })
}

/** The newest failed runs of a period, to find the most frequent cause. */
export function useFailedRuns(environmentId: string, runs: Range | undefined) {
  return useQuery({
    queryKey: ['overview', 'failed runs', environmentId, runs],
    queryFn: async ({ signal }) => {
      const query = { from: runs?.from, to: runs?.to, status: 'FAILED' as const, limit: PAGE }
      return await api.listOperatorRuns({ params: { environmentId }, query }, { signal })
    },
    enabled: runs !== undefined,
    refetchInterval: SLOW_REFRESH_MS,
    placeholderData: keepPreviousData,
  })
}

/** The outcomes of a period's requests: those that expired or were decided, without those that clients withdrew. */
export function useAskedFor(environmentId: string, runs: Range | undefined) {
  return useQuery({
    queryKey: ['approvals', environmentId, 'asked for', runs],
    queryFn: async ({ signal }) => {
      const query = { from: runs?.from, to: runs?.to, limit: PAGE }
      const { items: all, nextCursor } = await api.listApprovals({ params: { environmentId }, query }, { signal })
      const items = all.filter(({ waiting }) => waiting.state !== 'withdrawn')
      // Check the time too, because the service marks a request as expired a moment later.
      const isExpired = ({ status, expiresAt }: ApprovalCard) =>
        status === 'EXPIRED' || (status === 'PENDING' && Date.parse(expiresAt) <= Date.now())
      const expired = items.filter(isExpired).length
      const ended = items.filter((one) => one.status !== 'PENDING' || isExpired(one))
      return { ended: ended.length, expired, isMore: nextCursor !== null }
    },
    enabled: runs !== undefined,
    refetchInterval: SLOW_REFRESH_MS,
    placeholderData: keepPreviousData,
  })
}

/**
 * Agents whose cost per run rose since the previous period, according to a sample: since when, and the deployment at
 * that time.
 */
export function useDearer(environmentId: string, time: ReturnType<typeof useTime>['data']) {
  const looked = time ? dearerAgents(time.agents, time.agentsBefore) : []
  return useQuery({
    queryKey: ['overview', 'dearer', environmentId, time?.window.from, time?.window.to, looked.map(({ key }) => key)],
    queryFn: async ({ signal }) => {
      if (!time || looked.length === 0) return []
      const { window } = time
      const earlier = hoursBefore(window)
      const both = hourTimes({ from: earlier.from, to: window.to })
      const params = { environmentId }
      const runsOf = async (agentId: string, within: HourWindow) => {
        const query = { agentId, ...hourTimes(within), limit: PAGE }
        return costSums((await api.listOperatorRuns({ params, query }, { signal })).items)
      }
      const [points, changes, ...sums] = await Promise.all([
        allItems((input) => api.readUsagePoints(input, { signal }), {
          params,
          query: { ...both, by: 'agent' as const, ...stepsOf(window), limit: POINTS_PAGE },
        }),
        api.listDeploymentChanges({ params, query: { ...both, limit: PAGE } }, { signal }),
        ...looked.map(async ({ key }) => Promise.all([runsOf(key, window), runsOf(key, earlier)])),
      ])
      return looked.flatMap((agent, index) => {
        const [now, before] = sums[index] ?? []
        if (!now || !before || !areDearer(now, before)) return []
        const change = changedAt(points.filter(({ key }) => key === agent.key))
        const deployed = change && deployedThen(changes.items, change, window.stepMs)
        return [{ agent, now: mean(now), before: mean(before), at: change?.at ?? null, deployed }]
      })
    },
    enabled: time !== undefined,
    staleTime: SLOW_REFRESH_MS,
    placeholderData: keepPreviousData,
  })
}

/** Runs in the range that a person should look at. */
export function useRunsThat(
  environmentId: string,
  range: Range,
  filter: Pick<OperatorRunsQuery, 'activity' | 'completeness'>,
) {
  return useQuery({
    queryKey: ['overview', 'runs that', environmentId, range, filter],
    queryFn: async ({ signal }) => {
      const query = { ...filter, ...timesOfRange(range, Date.now()), limit: RUNS_COUNTED }
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

export interface Bar {
  /** Start in milliseconds. */
  from: number
  to: number
  /** Outcomes of the runs that started in this part of the period. */
  outcomes: Outcomes
}

const WHOLE = { step: 'window' } as const
/** Maximum number of bars: with more, they would be too thin to tap. */
const BARS = 31

/** The period as bars, with the outcomes of the runs; and the agents that were active, most expensive first. */
export function useTime(environmentId: string, range: Range) {
  return useQuery({
    queryKey: ['overview', 'time', environmentId, range],
    queryFn: async ({ signal }) => {
      const window = hoursOf(range, OVERVIEW_SINCE, Date.now())
      // Read the whole period separately, because latencies of hours cannot be added up.
      const read = (step: ReturnType<typeof stepsOf> | typeof WHOLE, time = window) =>
        allItems((input) => api.readUsagePoints(input, { signal }), {
          params: { environmentId },
          query: { ...hourTimes(time), by: 'agent' as const, ...step, limit: POINTS_PAGE },
        })
      const [points, agents, earlier] = await Promise.all([
        read(stepsOf(window)),
        read(WHOLE),
        read(WHOLE, hoursBefore(window)),
      ])
      const steps = Math.ceil(window.starts.length / BARS)
      const barMs = steps * window.stepMs
      const shown = { ...window, starts: window.starts.filter((_, step) => step % steps === 0) }
      const byBar = Map.groupBy(points, (point) => stepAt(shown, Date.parse(point.from)).step)
      const timeBars = shown.starts.map((from, bar): Bar => {
        return { from, to: stepAt(shown, from).end, outcomes: outcomesOf(byBar.get(bar) ?? []) }
      })
      const cost = (point: UsagePoint) => wholeCost(costsOf(point))
      agents.sort((a, b) => cost(b) - cost(a) || b.usage.totalTokens - a.usage.totalTokens || b.runs - a.runs)
      const runs = runsRange(window, range)
      const [outcomes, before] = [outcomesOf(agents), outcomesOf(earlier)]
      return { window, runs, bars: timeBars, barMs, outcomes, before, agents, agentsBefore: earlier }
    },
    refetchInterval: DAY_REFRESH_MS,
    placeholderData: keepPreviousData,
  })
}
