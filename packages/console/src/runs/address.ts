/** Search parameters of the pages of runs: the list, a run, a comparison, the queue to judge, the search, usage. */
import type { RunStatus } from '@tacho/contract/runs/run.ts'
import { RUN_SORTS } from '@tacho/contract/engine/words.ts'
import { readScoreFilter } from '@tacho/contract/runs/score-filter.ts'
import { RUN_FILTERS } from '@tacho/contract/runs/run-filters.ts'
import { SEARCH_FILTERS } from '@tacho/contract/runs/search-filters.ts'
import type { FilterAddress } from '@tacho/contract/web/filter.ts'
import { readFilters, readRange, type Range, type Since, textOf } from '../web/address.ts'

/** Search parameters of the runs list and of a run. */

/** A copy of the contract's list, whose file loads the schema library: a page must not load that. */
export const STATUSES = ['RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED'] as const satisfies readonly RunStatus[]

/** A stalled run has the status RUNNING. */
export const STATUS_FILTERS = ['RUNNING', 'STALLED', 'COMPLETED', 'FAILED', 'CANCELLED'] as const

/** Sort orders apart from newest first. They list only ended runs. */
export const RUN_ORDERS = RUN_SORTS.filter((sort) => sort !== 'newest')
export type RunSort = (typeof RUN_ORDERS)[number]

/** Whether runs of this status have not ended. All other orders need an end. */
export const isOpen = (status: string | undefined): boolean => status === 'RUNNING' || status === 'STALLED'

/** The range applies to the start times. */
export interface RunListAddress extends Range, Omit<FilterAddress<typeof RUN_FILTERS>, 'status'> {
  status?: (typeof STATUS_FILTERS)[number]
  scoreOrder?: 'lowest' | 'highest'
  order?: RunSort
  /** Names of columns, separated by commas. */
  columns?: string
}

export function readRunListAddress(search: Record<string, unknown>): RunListAddress {
  const { status: _, score, ...filters } = readFilters(RUN_FILTERS, search)
  const { status, scoreOrder, order, columns } = textOf(search, ['status', 'scoreOrder', 'order', 'columns'])
  const knownStatus = STATUS_FILTERS.find((one) => one === status)
  const knownOrder = isOpen(knownStatus) ? undefined : RUN_ORDERS.find((one) => one === order)
  return {
    ...filters,
    ...readRange(search),
    ...(knownStatus && { status: knownStatus }),
    ...(score !== undefined && readScoreFilter(score) !== null && { score }),
    ...((scoreOrder === 'lowest' || scoreOrder === 'highest') && { scoreOrder }),
    ...(knownOrder && { order: knownOrder }),
    ...(columns !== undefined && { columns }),
  }
}

export const VIEWS = ['timeline', 'transcript', 'table'] as const
export type View = (typeof VIEWS)[number]

export interface RunAddress {
  view?: View
  /** Event id of the selected step. */
  step?: string
  find?: string
  sort?: Sort
}

/** Sort orders; without one, steps are sorted by time. */
const SORTS = ['gap', 'type', 'size'] as const
export type Sort = (typeof SORTS)[number]

export function readRunAddress(search: Record<string, unknown>): RunAddress {
  const { view, sort, ...texts } = textOf(search, ['view', 'step', 'find', 'sort'])
  const knownView = VIEWS.find((one) => one === view)
  const knownSort = SORTS.find((one) => one === sort)
  return { ...texts, ...(knownView && { view: knownView }), ...(knownSort && { sort: knownSort }) }
}

/** The client's ids of the two runs. */
interface CompareAddress {
  a?: string
  b?: string
  /**
   * The environment of b, by name or id; absent: the page's. A replay may be in another environment than its original.
   */
  bIn?: string
}

export function readCompareAddress(search: Record<string, unknown>): CompareAddress {
  return textOf(search, ['a', 'b', 'bIn'])
}

/** Search parameters of the queue of runs to judge: the filter, the name of the score, and who judges. */

export interface JudgeAddress extends Omit<RunListAddress, 'columns' | 'unscored' | 'scoreOrder'> {
  /** `anyone`: runs without any judgement. Absent: runs that the signed-in person has not judged. */
  by?: 'anyone'
  /** Name of the score to give. */
  name?: string
}

export function readJudgeAddress(search: Record<string, unknown>): JudgeAddress {
  const { columns: _, unscored: __, scoreOrder: ___, ...filter } = readRunListAddress(search)
  // Only ended runs can be judged.
  if (isOpen(filter.status)) delete filter.status
  const { by, ...name } = textOf(search, ['name', 'by'])
  return { ...filter, ...name, ...(by === 'anyone' && { by }) }
}

/** Search parameters of the search over payloads. */

export const SEARCH_SINCE_DEFAULT: Since = '30d'

export type SearchAddress = Range & FilterAddress<typeof SEARCH_FILTERS>

export function readSearchAddress(search: Record<string, unknown>): SearchAddress {
  return { ...readFilters(SEARCH_FILTERS, search), ...readRange(search) }
}

export const GROUPS = ['agent', 'model', 'promptVersion', 'tool', 'session', 'user'] as const
export const MEASURES = ['cost', 'tokens', 'steps', 'outcomes', 'failed', 'llm', 'tool'] as const
/** Measures by group. The first one is the default. */
export const MEASURES_OF: Record<(typeof GROUPS)[number], readonly (typeof MEASURES)[number][]> = {
  agent: MEASURES,
  model: ['cost', 'tokens', 'steps', 'llm'],
  promptVersion: MEASURES,
  tool: ['steps', 'failed', 'tool'],
  session: ['cost', 'tokens', 'steps', 'outcomes', 'failed'],
  user: ['cost', 'tokens', 'steps', 'outcomes', 'failed'],
}

export interface UsageAddress extends Range {
  by?: (typeof GROUPS)[number]
  show?: (typeof MEASURES)[number]
}

export function readUsageAddress(search: Record<string, unknown>): UsageAddress {
  const { by, show } = textOf(search, ['by', 'show'])
  const group = GROUPS.find((one) => one === by)
  const measure = MEASURES.find((one) => one === show)
  return {
    ...readRange(search),
    ...(group && { by: group }),
    ...(measure && { show: measure }),
  }
}

const SUM_ORDERS = ['cost', 'tokens', 'runs', 'failed'] as const
export type SumOrder = (typeof SUM_ORDERS)[number]

/** The period of sums, if the address has none. */
export const SUMS_SINCE: Since = '7d'

export interface SumsAddress extends Range {
  order?: SumOrder
  /** Part of a name to search for. */
  q?: string
}

export function readSumsAddress(search: Record<string, unknown>): SumsAddress {
  const { order, q } = textOf(search, ['order', 'q'])
  const known = SUM_ORDERS.find((one) => one === order)
  return {
    ...readRange(search),
    ...(known && { order: known }),
    ...(q !== undefined && { q }),
  }
}
