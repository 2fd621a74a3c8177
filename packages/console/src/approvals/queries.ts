/** Queries of the approvals pages. Every key begins with the environment, so that one hint renews them all. */
import { queryOptions, useQuery } from '@tanstack/react-query'
import type { ApprovalStatus } from '@tacho/contract/approvals/approval.ts'
import type { ApprovalCard } from '@tacho/contract/approvals/operator-approval.ts'
import { APPROVAL_FILTERS, HINDSIGHT_FILTERS } from '@tacho/contract/approvals/approval-filters.ts'
import type { FilterAddress } from '@tacho/contract/web/filter.ts'
import { api } from '../web/api.ts'
import { usePages } from '../web/queries.ts'
import { HINDSIGHTS, type Hindsight } from '@tacho/contract/engine/words.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { filterQuery, readFilters, readRange, textOf, timesOfRange, type Range } from '../web/address.ts'

/** Refetch interval if the stream of hints is down. */
const FALLBACK_MS = 30_000
const PENDING_SHOWN = 200
const INPUT_MS = 3_000
const AFTERMATH_MS = 2_000
const UNANSWERED_MS = 15_000
const EARLIER_SHOWN = 5
const EARLIER_COUNTED = 50

export const approvalsKey = (environmentId: string) => ['approvals', environmentId] as const

/** Waiting requests, earliest deadline first. */
export const pendingQuery = (environmentId: string) =>
  queryOptions({
    queryKey: [...approvalsKey(environmentId), 'pending'],
    queryFn: ({ signal }) =>
      api.listApprovals({ params: { environmentId }, query: { status: 'PENDING', limit: PENDING_SHOWN } }, { signal }),
    // The agent's event with the input may arrive after its request.
    refetchInterval: ({ state: { data } }) => (data?.items.some(mayGetInput) ? INPUT_MS : FALLBACK_MS),
  })

/** Whether the input may still arrive. Agents without recorded inputs never send one. */
const mayGetInput = ({ inputInShort, runId, createdAt }: ApprovalCard): boolean =>
  inputInShort === null && runId !== null && Date.now() - Date.parse(createdAt) < FALLBACK_MS

/** A cursor is valid only for the period that it was made for. */
interface Place {
  times: { from?: string; to?: string }
  cursor: string
}

export function useHistory(environmentId: string, { show, ...search }: ApprovalListAddress) {
  return usePages({
    queryKey: [...approvalsKey(environmentId), 'history', search],
    async read(place: Place | undefined, signal) {
      const times = place?.times ?? timesOfRange(search, Date.now())
      const query = { ...filterQuery(APPROVAL_FILTERS, search), ...times, limit: 50, cursor: place?.cursor }
      const { items, nextCursor } = await api.listApprovals({ params: { environmentId }, query }, { signal })
      return { items, nextCursor: nextCursor === null ? null : { times, cursor: nextCursor } }
    },
    isEnabled: show === 'history',
  })
}

/** Hints do not refresh this list, because the server reads the runs of all requests on a page. */
export function useHindsight(environmentId: string, { show, outcome: _, ...search }: ApprovalListAddress) {
  return usePages({
    queryKey: ['approvals in hindsight', environmentId, search],
    async read(place: Place | undefined, signal) {
      const times = place?.times ?? timesOfRange(search, Date.now())
      const filter = filterQuery(HINDSIGHT_FILTERS, search)
      const query = { ...filter, ...times, limit: LIMITS.hindsightPage, cursor: place?.cursor }
      const { items, nextCursor } = await api.listApprovalHindsight({ params: { environmentId }, query }, { signal })
      return { items, nextCursor: nextCursor === null ? null : { times, cursor: nextCursor } }
    },
    refreshMs: FALLBACK_MS,
    isEnabled: show === 'hindsight',
  })
}

export const approvalQuery = (environmentId: string, approvalId: string) =>
  queryOptions({
    queryKey: [...approvalsKey(environmentId), 'one', approvalId],
    queryFn: ({ signal }) => api.readApproval({ params: { environmentId, approvalId } }, { signal }),
    refetchInterval({ state: { data } }) {
      if (data?.status !== 'PENDING') return false
      // The agent's event with the input may arrive after its request.
      return data.inputPreview === null && data.runId !== null ? INPUT_MS : FALLBACK_MS
    },
  })

/** Requests of the last week that expired undecided, by policy. */
export function useUnanswered(environmentId: string, policyId?: string) {
  return useQuery({
    queryKey: [...approvalsKey(environmentId), 'unanswered', policyId],
    queryFn: ({ signal }) =>
      api.countUnansweredRequests({ params: { environmentId }, query: { policyId } }, { signal }),
    refetchInterval: UNANSWERED_MS,
  })
}

export function useAskingPolicies(environmentId: string) {
  return useQuery({
    queryKey: [...approvalsKey(environmentId), 'asked'],
    queryFn: ({ signal }) => api.listAskingPolicies({ params: { environmentId }, query: {} }, { signal }),
    staleTime: UNANSWERED_MS,
  })
}

/** Standing approvals. */
export function useGrants(environmentId: string, { show }: ApprovalListAddress) {
  return usePages({
    queryKey: [...approvalsKey(environmentId), 'grants'],
    read: (cursor: string | undefined, signal) =>
      api.listApprovalGrants({ params: { environmentId }, query: { limit: 50, cursor } }, { signal }),
    isEnabled: show === 'standing',
  })
}

/** Reads the run's events after the decision. With `isFollowed`, polls until the agent has recorded a call. */
export function useAftermath(environmentId: string, approvalId: string, isFollowed = false) {
  return useQuery({
    queryKey: [...approvalsKey(environmentId), 'aftermath', approvalId],
    queryFn: ({ signal }) => api.readApprovalAftermath({ params: { environmentId, approvalId } }, { signal }),
    refetchInterval: ({ state }) => (isFollowed && (state.data?.calls.length ?? 0) === 0 ? AFTERMATH_MS : false),
  })
}

/**
 * Earlier requests for the same tool, or for the same tool and input: newest first, with the outcomes of the newest.
 */
export function useEarlier(
  environmentId: string,
  { id, toolName, inputHash, createdAt }: ApprovalCard,
  alike: 'tool' | 'input',
) {
  return useQuery({
    queryKey: [...approvalsKey(environmentId), 'earlier', id, alike],
    queryFn: async ({ signal }) => {
      const query = { toolName, ...(alike === 'input' && { inputHash }), limit: EARLIER_COUNTED }
      const { items } = await api.listApprovals({ params: { environmentId }, query }, { signal })
      const ended = items.filter((item) => item.id !== id && item.status !== 'PENDING' && item.createdAt <= createdAt)
      const count = (status: ApprovalStatus) => ended.filter((item) => item.status === status).length
      return {
        latest: ended.slice(0, EARLIER_SHOWN),
        waiting: items.filter((item) => item.id !== id && item.status === 'PENDING').length,
        counts: { approved: count('APPROVED'), rejected: count('REJECTED'), expired: count('EXPIRED') },
      }
    },
  })
}

/** The range applies to the time of the request. */
export interface ApprovalListAddress extends Range, FilterAddress<typeof APPROVAL_FILTERS> {
  /** The list to show. Default: waiting requests. */
  show?: 'history' | 'hindsight' | 'standing'
  /** Filter of the hindsight view. */
  outcome?: Hindsight
}

export function readApprovalListAddress(search: Record<string, unknown>): ApprovalListAddress {
  const { show, outcome } = textOf(search, ['show', 'outcome'])
  return {
    ...readFilters(APPROVAL_FILTERS, search),
    ...readRange(search),
    ...((show === 'history' || show === 'hindsight' || show === 'standing') && { show }),
    ...(outcome !== undefined && Object.hasOwn(HINDSIGHTS, outcome) && { outcome: outcome as Hindsight }),
  }
}
