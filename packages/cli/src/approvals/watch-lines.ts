/** `tacho approvals watch` without a terminal, or with --no-decide. */
import type { OperatorApproval } from '@tacho/contract/approvals/operator-approval.ts'
import type { OperatorClient } from '../engine/operator-client.ts'
import { printJsonLine, printLine } from '../engine/output.ts'
import { approvalChanges } from './changes.ts'
import { approvalLine } from './approval-lines.ts'

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
