/** Sums of a time from the usage rollups, for lists of agents and sessions. */
import { allItems } from '@tacho/client/items.ts'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api } from '../api.ts'
import { DAYS, type Since, type SumOrder } from './search.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const REFRESH_MS = 15_000
/** LIMITS.usagePointsPage, which is in a larger file. */
const PAGE = 2_000

/** All agents; of sessions, of which there can be many, the first. The greatest value comes first. */
export function useSums(environmentId: string, by: 'agent' | 'session', since: Since, sort: SumOrder) {
  return useQuery({
    queryKey: ['usage sums', environmentId, by, since, sort],
    queryFn: async ({ signal }) => {
      const to = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
      const from = new Date(to + HOUR_MS - DAYS[since] * DAY_MS).toISOString()
      const query = { from, to: new Date(to).toISOString(), by, step: 'window', sort, limit: PAGE } as const
      const input = { params: { environmentId }, query }
      if (by === 'agent') {
        return { from, sums: await allItems((page) => api.readUsagePoints(page, { signal }), input), isAll: true }
      }
      const { items, nextCursor } = await api.readUsagePoints(input, { signal })
      return { from, sums: items, isAll: nextCursor === null }
    },
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
  })
}
