/** Sums of a time from the usage rollups, for lists of agents and sessions. */
import { allItems } from '@tacho/client/items.ts'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api } from '../../web/api.ts'
import { hoursOf, hourTimes, readRange, type Range } from '../../web/range.ts'
import { SUMS_SINCE, type SumOrder } from '../usage-search.ts'

const REFRESH_MS = 15_000
/** LIMITS.usagePointsPage, which is in a larger file. */
const PAGE = 2_000

/** All agents; of sessions, of which there can be many, the first. The greatest value comes first. */
export function useSums(environmentId: string, by: 'agent' | 'session', search: Range, sort: SumOrder) {
  const range = readRange(search)
  return useQuery({
    queryKey: ['usage sums', environmentId, by, range, sort],
    queryFn: async ({ signal }) => {
      const query = {
        ...hourTimes(hoursOf(range, SUMS_SINCE, Date.now())),
        by,
        step: 'window',
        sort,
        limit: PAGE,
      } as const
      const input = { params: { environmentId }, query }
      if (by === 'agent') {
        return { sums: await allItems((page) => api.readUsagePoints(page, { signal }), input), isAll: true }
      }
      const { items, nextCursor } = await api.readUsagePoints(input, { signal })
      return { sums: items, isAll: nextCursor === null }
    },
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
  })
}
