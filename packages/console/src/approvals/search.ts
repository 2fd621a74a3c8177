/** What the address of the approvals holds. */
import type { ApprovalStatus } from '@tacho/contract/approvals/approval.ts'
import { APPROVAL_STATUSES } from '@tacho/contract/engine/words.ts'
import { textOf } from '../web/search.ts'

export interface ApprovalsSearch {
  /** Waiting unless chosen. */
  show?: 'history'
  status?: ApprovalStatus
  tool?: string
  agent?: string
  policy?: string
  run?: string
}

export function readApprovalsSearch(search: Record<string, unknown>): ApprovalsSearch {
  const { show, status, ...texts } = textOf(search, ['show', 'status', 'tool', 'agent', 'policy', 'run'])
  const known = APPROVAL_STATUSES.find((one) => one === status)
  return { ...texts, ...(show === 'history' && { show }), ...(known && { status: known }) }
}
