/**
 * The list of runs. Its rows stay where they are: what arrives later is counted, and shown on demand. The rows on screen
 * follow their runs.
 */
import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { api } from '../../web/api.ts'
import { timesOfRange } from '../../web/address.ts'
import type { RunListAddress } from '../address.ts'
import { filterOf } from './views.ts'

const REFRESH_MS = 3_000
/** In another order, the first page seldom changes and may cost the server a search. */
const SORTED_REFRESH_MS = 30_000
const PAGE_RUNS = 100
/** Requests for one page, if few of the examined runs match. */
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
  // In an empty list, no row can move.
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

/** A view has filters alone. */
function orderOf({ order, score, scoreOrder }: RunListAddress) {
  if (order !== undefined) return { sort: order }
  return score !== undefined && scoreOrder ? { scoreOrder } : {}
}

/** What a list on screen does not show yet. Pure. */

interface Listed {
  id: string
}

/**
 * The rows in their places, each as it is now; the number of rows that have come since, and of those that match no longer.
 *
 * @param newest the first page as it is now.
 */
export function newsOf<Row extends Listed>(shown: readonly Row[], newest: readonly Row[]) {
  const now = new Map(newest.map((row) => [row.id, row]))
  const items = shown.map((row) => now.get(row.id) ?? row)
  const known = new Set(shown.map(({ id }) => id))
  // Rows after the last known one are older: the list shows them further down.
  const last = newest.findLastIndex(({ id }) => known.has(id))
  const until = shown.length === 0 ? newest.length : last + 1
  const isReplaced = shown.length > 0 && last < 0
  const news = newest.slice(0, isReplaced ? newest.length : until).filter(({ id }) => !known.has(id)).length
  // Rows after the last one that is still there may lie behind the end of the page.
  const end = shown.findLastIndex(({ id }) => now.has(id))
  const gone = shown.slice(0, end + 1).filter(({ id }) => !now.has(id)).length
  return { items, news, gone }
}
