/** Queries of the issues pages. */
import type { IssueState, IssueSummary, ListedIssue } from '@tacho/contract/issues/issue.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query'
import { api } from '../web/api.ts'
import { withRows } from '../runs/queries.ts'
import { ISSUE_FILTERS } from '@tacho/contract/issues/issue-filters.ts'
import { filterQuery, timesOfRange } from '../web/address.ts'
import { usePages } from '../web/queries.ts'
import type { IssueListAddress } from './address.ts'

const REFRESH_MS = 5_000
const CHANGES_READ = 200
const CHANGES_SHOWN = 5
/** Longest time before an issue in which a change may be its cause. */
const BEFORE_MS = 7 * 86_400_000

/** A cursor is valid only for the period that it was made for. */
interface Place {
  times: { from?: string; to?: string }
  cursor: string
}

export function useIssues(environmentId: string, state: IssueState, search: IssueListAddress) {
  const { first } = search
  return usePages<ListedIssue, Place>({
    queryKey: ['issues', environmentId, 'list', state, search],
    async read(place, signal) {
      const times = place?.times ?? timesOfRange(search, Date.now())
      const order = first ? { sort: 'firstSeen' as const, firstFrom: times.from, firstTo: times.to } : times
      const query = { ...filterQuery(ISSUE_FILTERS, search), state, ...order, limit: 50, cursor: place?.cursor }
      const { items, nextCursor } = await api.listIssues({ params: { environmentId }, query }, { signal })
      return { items, nextCursor: nextCursor === null ? null : { times, cursor: nextCursor } }
    },
    refreshMs: REFRESH_MS,
  })
}

/** Detections per day of the last days, by issue. Read again when one of the issues was detected again. */
export function useTrends(environmentId: string, issues: readonly IssueSummary[]) {
  return useQuery({
    queryKey: ['issue trends', environmentId, issues.map(({ id, lastSeenAt }) => [id, lastSeenAt])],
    queryFn: async ({ signal }) => {
      const trends = new Map<string, number[]>()
      for (let at = 0; at < issues.length; at += LIMITS.issueTrends) {
        const ids = issues.slice(at, at + LIMITS.issueTrends).map(({ id }) => id)
        const query = { ids: ids.join(',') }
        const { items } = await api.listIssueTrends({ params: { environmentId }, query }, { signal })
        for (const { id, days } of items) trends.set(id, days)
      }
      return trends
    },
    enabled: issues.length > 0,
    staleTime: 60_000,
    placeholderData: keepPreviousData,
  })
}

const NO_NAMES: ReadonlyMap<string, string> = new Map()

/** Names of agents, by their recorded ids. */
export function useAgentNames(environmentId: string): ReadonlyMap<string, string> {
  const { data = NO_NAMES } = useQuery({
    queryKey: ['agents', environmentId, 'names'],
    queryFn: async ({ signal }) => {
      const query = { limit: LIMITS.operatorPageMax }
      const { items } = await api.listAgents({ params: { environmentId }, query }, { signal })
      return new Map(items.flatMap(({ agentId, name }) => (agentId === null ? [] : [[agentId, name] as const])))
    },
    staleTime: 60_000,
  })
  return data
}

export const issueKey = (environmentId: string, issueId: string) => ['issues', environmentId, 'one', issueId] as const

export const issueQuery = (environmentId: string, issueId: string) =>
  queryOptions({
    queryKey: issueKey(environmentId, issueId),
    queryFn: ({ signal }) => api.readIssue({ params: { environmentId, issueId } }, { signal }),
    refetchInterval: REFRESH_MS,
  })

export function useOccurrences(environmentId: string, issueId: string) {
  return usePages({
    queryKey: [...issueKey(environmentId, issueId), 'occurrences'],
    read: (cursor, signal) =>
      api.listOccurrences({ params: { environmentId, issueId }, query: { limit: 25, cursor } }, { signal }),
    refreshMs: REFRESH_MS,
  })
}

export function useAffectedAgents(environmentId: string, issueId: string) {
  return usePages({
    queryKey: [...issueKey(environmentId, issueId), 'agents'],
    read: (cursor, signal) =>
      api.listAffectedAgents({ params: { environmentId, issueId }, query: { limit: 10, cursor } }, { signal }),
  })
}

export function useAffectedRuns(environmentId: string, issueId: string) {
  return usePages({
    queryKey: [...issueKey(environmentId, issueId), 'runs'],
    read: (cursor, signal) =>
      api.listAffectedRuns({ params: { environmentId, issueId }, query: { limit: 10, cursor } }, { signal }),
  })
}

export function useActivity(environmentId: string, issueId: string) {
  return usePages({
    queryKey: [...issueKey(environmentId, issueId), 'activity'],
    read: (cursor, signal) =>
      api.listIssueActivity({ params: { environmentId, issueId }, query: { limit: 50, cursor } }, { signal }),
    refreshMs: REFRESH_MS,
  })
}

export const recordQuery = (environmentId: string, recordId: string) =>
  queryOptions({
    queryKey: ['issue record', environmentId, recordId],
    queryFn: ({ signal }) => api.readIssueRecord({ params: { environmentId, recordId } }, { signal }),
    staleTime: 60_000,
  })

export const STEPS_BEFORE = 5

/** The last steps before an event, or of the run, sorted by time. */
export const stepsBeforeQuery = (environmentId: string, runId: string, eventId: string | undefined) =>
  queryOptions({
    queryKey: ['steps before', environmentId, runId, eventId],
    queryFn: async ({ signal }) => {
      const query = { order: 'latest', limit: STEPS_BEFORE, before: eventId } as const
      const { items } = await api.listEventRows({ params: { environmentId, runId }, query }, { signal })
      return withRows([], items.toReversed())
    },
    staleTime: 60_000,
  })

/** Deployments in the week before the issue was first seen, newest first. */
export function useChangesBefore(environmentId: string, firstSeenAt: string) {
  return useQuery({
    queryKey: ['changes before', environmentId, firstSeenAt],
    queryFn: async ({ signal }) => {
      const query = { limit: CHANGES_READ }
      const { items, nextCursor } = await api.listDeploymentChanges({ params: { environmentId }, query }, { signal })
      const seen = Date.parse(firstSeenAt)
      const since = seen - BEFORE_MS
      const before = items.filter(({ at }) => Date.parse(at) <= seen && Date.parse(at) >= since)
      const last = items.at(-1)
      const isPartial = nextCursor !== null && last !== undefined && Date.parse(last.at) > since
      return { changes: before.slice(0, CHANGES_SHOWN), isPartial }
    },
    staleTime: 60_000,
  })
}
