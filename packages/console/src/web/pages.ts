/** A list that is read page by page. */
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'

interface Page<Item, Place> {
  items: Item[]
  nextCursor: Place | null
}

interface Options<Item, Place> {
  queryKey: readonly unknown[]
  /** From a place that the page before gave; undefined: the first page. */
  read: (place: Place | undefined, signal: AbortSignal) => Promise<Page<Item, Place>>
  /** How often the list is read again while it shows one page. */
  refreshMs?: number
  isEnabled?: boolean
}

export function usePages<Item, Place = string>(options: Options<Item, Place>) {
  const { queryKey, read, refreshMs, isEnabled = true } = options
  const query = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) => read(pageParam as Place | undefined, signal),
    initialPageParam: undefined as Place | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 1 ? false : (refreshMs ?? false)),
    enabled: isEnabled,
    placeholderData: keepPreviousData,
  })
  return { ...query, items: query.data?.pages.flatMap((page) => page.items) ?? [] }
}
