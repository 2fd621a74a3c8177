/** What the address of the search over payloads holds. */
import { textOf } from '../ui/search.ts'

/** Length of time that the search goes back to, in hours. */
export const SEARCH_SINCE = { '1h': 1, '24h': 24, '7d': 168, '30d': 720, '90d': 2_160, '365d': 8_760 } as const
type SearchSince = keyof typeof SEARCH_SINCE
export const SEARCH_SINCE_DEFAULT: SearchSince = '30d'

export interface PayloadSearch {
  q?: string
  since?: SearchSince
}

export function readPayloadSearch(search: Record<string, unknown>): PayloadSearch {
  const { since, ...texts } = textOf(search, ['q', 'since'])
  return {
    ...texts,
    ...(since !== undefined && Object.hasOwn(SEARCH_SINCE, since) && { since: since as SearchSince }),
  }
}
