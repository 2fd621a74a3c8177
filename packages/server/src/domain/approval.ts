import { NewApproval, type Approval } from '@tacho/contract/approval.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { ApprovalGroup, AskedLately, OperatorApproval } from '@tacho/contract/operator/approval.ts'
import type { ApprovalGroupRow, ApprovalRow, NewApprovalRow } from '../storage/approvals.ts'
import type { Storage } from '../storage/storage.ts'
import { isoOf, orNull, pick } from './shown.ts'
import { unstorableField } from './text.ts'

const MINUTE_MS = 60_000

/** `burst`: this many requests of one agent in the window; counted up to `most`. */
export const ASKED_LATELY = { windowMs: 5 * MINUTE_MS, burst: 20, most: 1_000 } as const

const FIELDS = Object.keys(NewApproval.properties) as (keyof NewApproval)[]

export function unstorableText(request: NewApproval): keyof NewApproval | null {
  return unstorableField(request, FIELDS)
}

export function toNewApproval(
  request: NewApproval,
  { now, ...asked }: { id: string; environmentId: string; clientId: string; now: number },
): NewApprovalRow {
  const timeoutMs = request.timeoutMs ?? LIMITS.approvalTimeoutMsDefault
  return {
    ...asked,
    ...pick(request, 'clientRequestId', 'toolName'),
    ...orNull(request, 'runId', 'sessionId', 'agentId', 'policyId', 'reason'),
    inputHash: request.inputHash.toLowerCase(),
    timeoutMs,
    createdAt: now,
    expiresAt: now + timeoutMs,
  }
}

/** PENDING, although its time has passed. Call `expireOverdue` before you show it: the store must say EXPIRED first. */
export function isOverdue({ status, expiresAt }: ApprovalRow, now: number): boolean {
  return status === 'PENDING' && expiresAt <= now
}

const EXPIRED_AT_ONCE = 200

export async function expireOverdue(
  storage: Pick<Storage, 'expireApprovals'>,
  environmentId: string,
  at: number,
  { onExpired = () => undefined, mostRounds = Infinity }: { onExpired?: () => void; mostRounds?: number } = {},
): Promise<void> {
  for (let round = 0; round < mostRounds; round++) {
    const expired = await storage.expireApprovals(environmentId, at, EXPIRED_AT_ONCE)
    if (expired > 0) onExpired()
    if (expired < EXPIRED_AT_ONCE) return
  }
}

export function toApproval(row: ApprovalRow): Approval {
  return { ...pick(row, 'id', 'status', 'decisionReason'), ...isoOf(row, 'expiresAt', 'decidedAt') }
}

export function toOperatorApproval(row: ApprovalRow, agentName: string | null): OperatorApproval {
  const { deciderKind: kind, deciderId: id, deciderName: name, decidedVia: via } = row
  return {
    ...toApproval(row),
    ...pick(row, 'clientId', 'clientRequestId', 'runId', 'sessionId', 'agentId', 'policyId', 'toolName', 'inputHash'),
    ...pick(row, 'reason', 'timeoutMs'),
    ...isoOf(row, 'createdAt', 'importedAt'),
    agentName,
    decidedBy: kind === null ? null : { kind, id: id ?? '', name: name ?? '', via },
  }
}

export function toAskedLately(requests: number): AskedLately {
  const { windowMs, burst, most } = ASKED_LATELY
  return { requests, capped: requests >= most, windowMs, burst: requests >= burst }
}

export function toApprovalGroup(row: ApprovalGroupRow): ApprovalGroup {
  return { ...row, ...isoOf(row, 'oldestExpiresAt', 'oldestCreatedAt') }
}
