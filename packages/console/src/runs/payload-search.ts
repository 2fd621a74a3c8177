/** What the address of the search over payloads holds. */
import { readRange, type Range, type Since } from '../web/range.ts'
import { textOf } from '../web/search.ts'

export const SEARCH_SINCE_DEFAULT: Since = '30d'

export interface PayloadSearch extends Range {
  q?: string
}

export function readPayloadSearch(search: Record<string, unknown>): PayloadSearch {
  return { ...textOf(search, ['q']), ...readRange(search) }
}
