/** `tacho approvals watch`: shows approvals live; on a terminal, asks for decisions. */
import { createInterface } from 'node:readline/promises'
import type { OperatorApproval } from '@tacho/contract/operator/approval.ts'
import type { OperatorClient } from '../calls/operator-client.ts'
import { printJsonLine, printLine } from '../terminal/output.ts'
import { approvalChanges } from './changes.ts'
import { approvalLine } from './lines.ts'
import { promptingDecider } from './prompt.ts'

/** Prints each new or changed approval on a line, until interrupted. */
export async function watch(client: OperatorClient, environmentId: string, asJson: boolean): Promise<void> {
  for await (const approval of approvalChanges(client, environmentId)) printApproval(approval, asJson)
}

/** The same, and asks about each pending approval until the person quits. */
export async function watchAndDecide(client: OperatorClient, environmentId: string): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const decider = promptingDecider({
    client,
    environmentId,
    ask: (question, signal) => terminal.question(question, { signal }),
    print: printLine,
  })
  const leaving = new AbortController()
  const left = new Promise<void>((resolve) => {
    terminal.once('close', resolve)
    // Input between questions.
    terminal.on('line', (line) => line.trim() === 'q' && resolve())
  })
  async function follow(): Promise<void> {
    for await (const approval of approvalChanges(client, environmentId, leaving.signal)) decider.update(approval)
  }
  printLine('Waiting for approvals; press q to quit.')
  try {
    await Promise.race([decider.run(leaving.signal), left, follow()])
  } finally {
    leaving.abort()
    terminal.close()
  }
}

function printApproval(approval: OperatorApproval, asJson: boolean): void {
  if (asJson) printJsonLine(approval)
  else printLine(approvalLine(approval, Date.now()))
}
