import { textOf } from '../web/search.ts'

/** The external ids of the two runs. */
interface CompareSearch {
  a?: string
  b?: string
}

export function readCompareSearch(search: Record<string, unknown>): CompareSearch {
  return textOf(search, ['a', 'b'])
}
