import { readVersionedSearch, type Part, type VersionedSearch } from './search.ts'

/** What the address of a prompt holds. */
interface PromptSearch extends Omit<VersionedSearch, 'show'> {
  show?: Part | 'results'
}

export function readPromptSearch(search: Record<string, unknown>): PromptSearch {
  return { ...readVersionedSearch(search), ...(search['show'] === 'results' && { show: 'results' }) }
}
