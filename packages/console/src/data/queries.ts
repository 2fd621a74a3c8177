/** Queries of an environment's data settings. */
import type { ErasureSubject } from '@tacho/contract/data/erasure.ts'
import type { RetentionSettings } from '@tacho/contract/data/retention.ts'
import { queryOptions } from '@tanstack/react-query'
import { api } from '../web/api.ts'
import { usePages } from '../web/queries.ts'

const FOLLOW_MS = 2_000
const PASS_MS = 10_000
const PAGE = 50

export const retentionQuery = (environmentId: string) =>
  queryOptions({
    queryKey: ['retention', environmentId],
    queryFn: () => api.readRetention({ params: { environmentId } }),
    refetchInterval: ({ state: { data } }) =>
      data && data.source !== 'none' && (data.progress?.passEndedAt ?? null) === null ? FOLLOW_MS : PASS_MS,
  })

/** The data that these settings would remove now; null if they keep everything. */
export const retentionPreviewQuery = (environmentId: string, settings: RetentionSettings) =>
  queryOptions({
    queryKey: ['retention preview', environmentId, settings],
    queryFn: ({ signal }) => {
      const { keepOpenIssueRuns, ...days } = settings
      const setDays = Object.entries(days).filter(([, count]) => count !== null)
      if (setDays.length === 0) return null
      const query = { ...Object.fromEntries(setDays), keepOpenIssueRuns: keepOpenIssueRuns ? 'true' : 'false' } as const
      return api.previewRetention({ params: { environmentId }, query }, { signal })
    },
    staleTime: 0,
    gcTime: 0,
  })

export const erasurePreviewQuery = (environmentId: string, subject: ErasureSubject) =>
  queryOptions({
    queryKey: ['erasure preview', environmentId, subject],
    queryFn: ({ signal }) => api.previewErasure({ params: { environmentId }, body: subject }, { signal }),
    staleTime: 0,
    gcTime: 0,
  })

const erasuresKey = (environmentId: string) => ['erasures', environmentId] as const

export function useErasures(environmentId: string) {
  return usePages({
    queryKey: erasuresKey(environmentId),
    read: (cursor, signal) =>
      api.listErasures({ params: { environmentId }, query: { limit: PAGE, cursor } }, { signal }),
    refreshMs: FOLLOW_MS,
  })
}
