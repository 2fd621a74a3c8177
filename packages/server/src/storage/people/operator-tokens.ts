import type { OperatorToken } from '@tacho/contract/people/token.ts'
import type { RowFor } from '../engine/row-for.ts'

export interface OperatorTokenRow extends Omit<RowFor<OperatorToken>, 'createdBy'> {
  hash: string
  /** All null: the service, or a build that did not record it. */
  creatorKind: 'operator' | 'token' | null
  creatorId: string | null
  creatorName: string | null
}
