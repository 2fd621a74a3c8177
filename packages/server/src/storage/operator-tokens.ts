import type { OperatorToken } from '@tacho/contract/operator/token.ts'
import type { RowFor } from './row-for.ts'

export interface OperatorTokenRow extends RowFor<OperatorToken> {
  hash: string
}
