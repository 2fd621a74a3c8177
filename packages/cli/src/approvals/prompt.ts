/**
 * Asks a person about pending approvals one by one, the earliest deadline first.
 *
 *   idle --one is pending--> asking --answered--> deciding --> idle
 *                            asking --decided elsewhere--> idle (the question is withdrawn)
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Decision } from '@tacho/contract/approval.ts'
import type { ApprovalDetail, OperatorApproval } from '@tacho/contract/operator/approval.ts'
import { Refused, type OperatorClient } from '../calls/operator-client.ts'
import { approvalLine, detailLines } from './lines.ts'

export interface PromptOptions {
  client: OperatorClient
  environmentId: string
  /** Rejects if the signal is aborted. */
  ask: (question: string, signal: AbortSignal) => Promise<string>
  print: (line: string) => void
}

export interface PromptingDecider {
  update(approval: OperatorApproval): void
  /** Asks until the person quits, or the signal is aborted between questions. */
  run(signal: AbortSignal): Promise<void>
}

const LOOK_MS = 100
const FRESH_MS = 5_000
const INPUT_LOOKS = 8
const INPUT_PAUSE_MS = 250
const DECISIONS = new Map<string, Decision>([
  ['a', 'APPROVED'],
  ['r', 'REJECTED'],
])

export function promptingDecider({ client, environmentId, ask, print }: PromptOptions): PromptingDecider {
  const pending = new Map<string, OperatorApproval>()
  let asking: { id: string; withdrawn: AbortController } | null = null

  function update(approval: OperatorApproval): void {
    if (approval.status === 'PENDING') {
      pending.set(approval.id, approval)
      return
    }
    pending.delete(approval.id)
    if (asking?.id !== approval.id) return
    asking.withdrawn.abort()
    print(`\nAlready decided or expired: ${approvalLine(approval, Date.now())}`)
  }

  async function run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const next = [...pending.values()].sort((a, b) => Date.parse(a.expiresAt) - Date.parse(b.expiresAt))[0]
      if (!next) await sleep(LOOK_MS)
      else if ((await askAbout(next)) === 'leave') return
    }
  }

  async function askAbout({ id }: OperatorApproval): Promise<'next' | 'leave'> {
    const withdrawn = new AbortController()
    asking = { id, withdrawn }
    try {
      const detail = await readDetail(id)
      print('')
      for (const line of detailLines(detail, Date.now())) print(line)
      const answer = (await ask('Approve, reject, skip or quit? [a/r/s/q] ', withdrawn.signal)).trim().toLowerCase()
      if (answer === 'q') return 'leave'
      const decision = DECISIONS.get(answer)
      if (decision !== undefined) await decide(id, decision, withdrawn.signal)
      // Any other input decides nothing.
      if (decision !== undefined || answer === 's') pending.delete(id)
    } catch (error) {
      if (!withdrawn.signal.aborted && !(error instanceof Refused)) throw error
      if (error instanceof Refused) print(error.message)
      pending.delete(id)
    } finally {
      asking = null
    }
    return 'next'
  }

  /** A client records the input after its request, so wait a moment for it. */
  async function readDetail(id: string): Promise<ApprovalDetail> {
    for (let looks = 1; ; looks++) {
      const detail = await client.readApproval({ params: { environmentId, approvalId: id } })
      const isFresh = Date.now() - Date.parse(detail.createdAt) < FRESH_MS
      if (detail.inputPreview !== null || detail.runId === null || !isFresh || looks === INPUT_LOOKS) return detail
      await sleep(INPUT_PAUSE_MS)
    }
  }

  async function decide(id: string, decision: Decision, signal: AbortSignal): Promise<void> {
    const reason = (await ask('Reason, sent to the client and stored (Enter: none): ', signal)).trim()
    asking = null
    const decided = await client.decideApproval({
      params: { environmentId, approvalId: id },
      body: { decision, ...(reason === '' ? {} : { reason }) },
    })
    print(approvalLine(decided, Date.now()))
  }

  return { update, run }
}
