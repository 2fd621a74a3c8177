/** `tacho approvals watch` without a terminal, or with --no-decide. */
import type { OperatorApproval } from '@tacho/contract/operator/approval.ts'
import type { OperatorClient } from '../calls/operator-client.ts'
import { printJsonLine, printLine } from '../terminal/output.ts'
import { approvalChanges } from './changes.ts'
import { approvalLine } from './lines.ts'

/** Prints each new or changed approval on a line, until interrupted. */
export async function watch(client: OperatorClient, environmentId: string, asJson: boolean): Promise<void> {
  for await (const approval of approvalChanges(client, environmentId)) {
    if (approval.status !== 'ERASED') printApproval(approval, asJson)
  }
}

function printApproval(approval: OperatorApproval, asJson: boolean): void {
  if (asJson) printJsonLine(approval)
  else printLine(approvalLine(approval, Date.now()))
}
