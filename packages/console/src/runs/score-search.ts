/** What the address of the queue of runs to judge holds: which runs, what is judged, and which share. */
import { readRunsSearch, type RunsSearch } from './search.ts'
import { textOf } from '../web/search.ts'

export interface JudgeSearch extends Omit<RunsSearch, 'columns' | 'unscored' | 'scoreOrder'> {
  /** Name of the score that is given. */
  name?: string
}

export function readJudgeSearch(search: Record<string, unknown>): JudgeSearch {
  const { columns: _, unscored: __, scoreOrder: ___, ...filter } = readRunsSearch(search)
  return { ...filter, ...textOf(search, ['name']) }
}
