/** Rules and shapes of approvals. How they go from state to state is drawn in storage/sql/approvals.ts. */
import type { Approval, NewApproval } from '@tacho/contract/approval.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { ApprovalGroup, AskedLately, OperatorApproval } from '@tacho/contract/operator/approval.ts'
import type { ApprovalGroupRow, ApprovalRow, NewApprovalRow } from '../storage/approvals.ts'
import { isoTime } from './run.ts'
import { isStorableText } from './text.ts'

const MINUTE_MS = 60_000

/** The window in which requests of one agent are counted, and how many of them make a burst. */
export const ASKED_LATELY = { windowMs: 5 * MINUTE_MS, burst: 20, most: 1_000 } as const

const TEXTS = ['clientRequestId', 'runId', 'sessionId', 'agentId', 'policyId', 'toolName', 'reason'] as const

/** The first text that no store keeps as it is, or null. */
export function unstorableText(request: NewApproval): (typeof TEXTS)[number] | null {
  return TEXTS.find((field) => !isStorableText(request[field] ?? '')) ?? null
}

/** A request that has passed its schema, as it is stored. `now` in milliseconds. */
export function toNewApproval(
  request: NewApproval,
  asked: { id: string; environmentId: string; clientId: string; now: number },
): NewApprovalRow {
  const { id, environmentId, clientId, now } = asked
  const timeoutMs = request.timeoutMs ?? LIMITS.approvalTimeoutMsDefault
  return {
    id,
    environmentId,
    clientId,
    clientRequestId: request.clientRequestId,
    runId: request.runId ?? null,
    sessionId: request.sessionId ?? null,
    agentId: request.agentId ?? null,
    policyId: request.policyId ?? null,
    toolName: request.toolName,
    inputHash: request.inputHash.toLowerCase(),
    reason: request.reason ?? null,
    timeoutMs,
    createdAt: now,
    expiresAt: now + timeoutMs,
  }
}

/** Whether the clock has made it EXPIRED, though the store does not say so yet: nobody may be told before it does. */
export function isOverdue({ status, expiresAt }: ApprovalRow, now: number): boolean {
  return status === 'PENDING' && expiresAt <= now
}

export function toApproval(row: ApprovalRow): Approval {
  return {
    id: row.id,
    status: row.status,
    expiresAt: isoTime(row.expiresAt),
    decidedAt: row.decidedAt === null ? null : isoTime(row.decidedAt),
    decisionReason: row.decisionReason,
  }
}

export function toOperatorApproval(row: ApprovalRow): OperatorApproval {
  const { deciderKind: kind, deciderId: id, deciderName: name } = row
  return {
    ...toApproval(row),
    clientId: row.clientId,
    clientRequestId: row.clientRequestId,
    runId: row.runId,
    sessionId: row.sessionId,
    agentId: row.agentId,
    policyId: row.policyId,
    toolName: row.toolName,
    inputHash: row.inputHash,
    reason: row.reason,
    timeoutMs: row.timeoutMs,
    createdAt: isoTime(row.createdAt),
    decidedBy: kind === null ? null : { kind, id: id ?? '', name: name ?? '' },
  }
}

/** `requests` as counted up to ASKED_LATELY.most. */
export function toAskedLately(requests: number): AskedLately {
  const { windowMs, burst, most } = ASKED_LATELY
  return { requests, capped: requests >= most, windowMs, burst: requests >= burst }
}

export function toApprovalGroup({ oldestExpiresAt, oldestCreatedAt, ...group }: ApprovalGroupRow): ApprovalGroup {
  return { ...group, oldestExpiresAt: isoTime(oldestExpiresAt), oldestCreatedAt: isoTime(oldestCreatedAt) }
}
