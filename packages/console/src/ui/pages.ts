/** A list that is read page by page. */
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'

interface Page<Item> {
  items: Item[]
  nextCursor: string | null
}

interface Options<Item> {
  queryKey: readonly unknown[]
  read: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<Item>>
  /** How often the list is read again while it shows one page. */
  refreshMs?: number
}

export function usePages<Item>({ queryKey, read, refreshMs }: Options<Item>) {
  const query = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 1 ? false : (refreshMs ?? false)),
    placeholderData: keepPreviousData,
  })
  return { ...query, items: query.data?.pages.flatMap((page) => page.items) ?? [] }
}
