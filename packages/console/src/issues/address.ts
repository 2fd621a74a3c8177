/** What the addresses of the list of issues and of an issue hold. */
import type { IssueState } from '@tacho/contract/issues/issue.ts'
import { ISSUE_STATES } from '@tacho/contract/engine/words.ts'
import { readRange, type Range, textOf } from '../web/address.ts'

/** The range is that of the last detection. */
export interface IssueListAddress extends Range {
  /** Open unless chosen. */
  state?: IssueState
  type?: string
  agent?: string
  assignee?: string
  assigned?: 'true' | 'false'
  /** In runs for this end user. */
  user?: string
  /** By the latest detection unless chosen; the range is of the same. */
  first?: 'true'
}

export function readIssueListAddress(search: Record<string, unknown>): IssueListAddress {
  const { state, assigned, first, ...texts } = textOf(search, [
    'state',
    'type',
    'agent',
    'assignee',
    'assigned',
    'user',
    'first',
  ])
  const known = ISSUE_STATES.find((one) => one === state)
  return {
    ...texts,
    ...readRange(search),
    ...(known && { state: known }),
    ...(first === 'true' && { first }),
    ...((assigned === 'true' || assigned === 'false') && { assigned }),
  }
}

export interface IssueAddress {
  /** Id of the occurrence that is shown; the newest unless chosen. */
  occurrence?: string
}

export const readIssueSearch = (search: Record<string, unknown>): IssueAddress => textOf(search, ['occurrence'])
