/**
 * The list of runs. Its rows keep their order: runs that arrive later are counted, and shown on demand. The rows on
 * screen are kept up to date.
 */
import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { api } from '../../web/api.ts'
import { timesOfRange } from '../../web/address.ts'
import { newsOf } from '../../web/ui/steady-rows.ts'
import type { RunListAddress } from '../address.ts'
import { filterOf } from './views.ts'

const REFRESH_MS = 3_000
/**
 * Longer interval for other sort orders: the first page seldom changes, and reading it may cost the server a search.
 */
const SORTED_REFRESH_MS = 30_000
const PAGE_RUNS = 100
/** Maximum number of requests for one page, if only few of the examined runs match. */
const LOOKS_PER_PAGE = 4

export function useRuns(environmentId: string, { columns: _, ...search }: RunListAddress) {
  const cache = useQueryClient()
  const queryKey = ['runs', environmentId, search]
  const runs = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) => readPage(environmentId, search, pageParam, signal),
    // A cursor is valid only for the filter it was made with.
    initialPageParam: undefined as Start | undefined,
    getNextPageParam: ({ next }) => next,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    placeholderData: keepPreviousData,
  })
  const newest = useQuery({
    queryKey: [...queryKey, 'newest'],
    queryFn: ({ signal }) => readPage(environmentId, search, undefined, signal),
    refetchInterval: search.order === undefined ? REFRESH_MS : SORTED_REFRESH_MS,
    enabled: runs.data !== undefined && !runs.isPlaceholderData,
  })
  const { items, news, gone } = newsOf(runs.data?.pages.flatMap((page) => page.items) ?? [], newest.data?.items ?? [])
  const showNews = () => {
    if (newest.data) cache.setQueryData(queryKey, { pages: [newest.data], pageParams: [undefined] })
  }
  // In an empty list, new runs appear at once, because they move no row.
  const isFirst = items.length === 0 && news > 0
  useEffect(() => {
    if (isFirst) showNews()
  })
  return { ...runs, items, news, gone, showNews }
}

interface Start {
  start: string | undefined
  cursor: string
}

async function readPage(environmentId: string, search: RunListAddress, from: Start | undefined, signal: AbortSignal) {
  const start = from?.start ?? timesOfRange(search, Date.now()).from
  const query = { ...filterOf(search), from: start, ...orderOf(search) }
  const items: OperatorRun[] = []
  let cursor = from?.cursor
  // The server examines a bounded number of runs for a page, so a page can be short.
  for (let looks = 0; looks < LOOKS_PER_PAGE; looks++) {
    const page = await api.listOperatorRuns(
      { params: { environmentId }, query: { ...query, cursor, limit: PAGE_RUNS - items.length } },
      { signal },
    )
    items.push(...page.items)
    cursor = page.nextCursor ?? undefined
    if (cursor === undefined || items.length === PAGE_RUNS) break
  }
  return { items, next: cursor === undefined ? null : { start, cursor }, isCut: items.length < PAGE_RUNS }
}

/** The order of a list. A view contains only filters. */
function orderOf({ order, score, scoreOrder }: RunListAddress) {
  if (order !== undefined) return { sort: order }
  return score !== undefined && scoreOrder ? { scoreOrder } : {}
}
