/** Search parameters of the issues list and of an issue's page. */
import { ISSUE_FILTERS } from '@tacho/contract/issues/issue-filters.ts'
import type { FilterAddress } from '@tacho/contract/web/filter.ts'
import { readFilters, readRange, type Range, textOf } from '../web/address.ts'

/** The range applies to the last detection. The default state is open. */
export interface IssueListAddress extends Range, FilterAddress<typeof ISSUE_FILTERS> {
  /** Sort and range use the first detection; absent: the last one. */
  first?: 'true'
}

export function readIssueListAddress(search: Record<string, unknown>): IssueListAddress {
  const { first } = textOf(search, ['first'])
  return { ...readFilters(ISSUE_FILTERS, search), ...readRange(search), ...(first === 'true' && { first }) }
}

export interface IssueAddress {
  /** Id of the occurrence to show. Default: the newest. */
  occurrence?: string
}

export const readIssueSearch = (search: Record<string, unknown>): IssueAddress => textOf(search, ['occurrence'])
