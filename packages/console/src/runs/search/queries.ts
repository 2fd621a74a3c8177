/** Queries of the search: whether it is on, and the matching events. */
import type { SearchHit, SearchSettings } from '@tacho/contract/runs/search.ts'
import { queryOptions } from '@tanstack/react-query'
import { api } from '../../web/api.ts'
import { usePages } from '../../web/queries.ts'
import { orDefault, timesOfRange } from '../../web/address.ts'
import { SEARCH_SINCE_DEFAULT, type SearchAddress } from '../address.ts'

const PAGE_HITS = 50
/** Maximum number of requests for one page, if few of the compared events match. */
const LOOKS_PER_PAGE = 4
const FOLLOW_MS = 2_000

export const searchSettingsQuery = (environmentId: string) =>
  queryOptions({
    queryKey: ['search settings', environmentId],
    queryFn: () => api.readSearchSettings({ params: { environmentId } }),
    // Poll while the index is being built or deleted.
    refetchInterval: ({ state: { data } }) =>
      data?.state === 'INDEXING' || data?.state === 'REMOVING' ? FOLLOW_MS : false,
  })

/** A cursor is valid only for the window that it was made for. */
interface Place {
  times: { from?: string; to?: string }
  cursor: string
}

export function useHits(environmentId: string, { q = '', ...range }: SearchAddress, state: SearchSettings['state']) {
  return usePages<SearchHit, Place>({
    // Read again when the index is ready, and at intervals until then.
    queryKey: ['search', environmentId, q, range, state],
    ...(state === 'INDEXING' && { refreshMs: FOLLOW_MS }),
    isEnabled: q.trim() !== '',
    async read(place, signal) {
      const times = place?.times ?? timesOfRange(orDefault(range, SEARCH_SINCE_DEFAULT), Date.now())
      const items: SearchHit[] = []
      let cursor = place?.cursor
      for (let looks = 0; looks < LOOKS_PER_PAGE; looks++) {
        const query = { q, ...times, cursor, limit: PAGE_HITS - items.length }
        const page = await api.searchEvents({ params: { environmentId }, query }, { signal })
        items.push(...page.items)
        cursor = page.nextCursor ?? undefined
        if (cursor === undefined || items.length === PAGE_HITS) break
      }
      return { items, nextCursor: cursor === undefined ? null : { times, cursor } }
    },
  })
}
