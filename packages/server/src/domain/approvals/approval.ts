import { NewApproval, type Approval } from '@tacho/contract/approvals/approval.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type {
  ApprovalGroup,
  AskedLately,
  OperatorApproval,
  Waiting,
} from '@tacho/contract/approvals/operator-approval.ts'
import { isObject, textAt, type Json } from '@tacho/contract/record/payload-reader.ts'
import { RAN_STATUSES, stopMessage, WITHDRAWN_REASONS, type RanStatus } from '@tacho/contract/engine/words.ts'
import {
  firstApprovalOf,
  type ApprovalGroupRow,
  type ApprovalRow,
  type NewApprovalRow,
  type ApprovalNote,
} from '../../storage/approvals/approvals.ts'
import type { NewIssueRecord } from '../../storage/issues/issues.ts'
import type { StopRow } from '../../storage/policies/policies.ts'
import type { Storage } from '../../storage/storage.ts'
import { isUuid, NIL_UUID } from '../../storage/engine/uuid.ts'
import { isoTime, MINUTE_MS } from '../../storage/engine/times.ts'
import { isoOf, orNull, pick } from '../web/shown.ts'
import { unstorableField, hasAtMost, isStorableText } from '../web/text.ts'

/** `burst`: how many requests of one agent in the window count as a burst; counted up to `most`. */
export const ASKED_LATELY = { windowMs: 5 * MINUTE_MS, burst: 20, most: 1_000 } as const

const FIELDS = Object.keys(NewApproval.properties) as (keyof NewApproval)[]

export function unstorableText(request: NewApproval): keyof NewApproval | null {
  return unstorableField(request, FIELDS)
}

interface AskedBy {
  id: string
  environmentId: string
  clientId: string
  keyFamily?: string | null
  now: number
}

export function toNewApproval(request: NewApproval, { now, keyFamily = null, ...asked }: AskedBy): NewApprovalRow {
  const timeoutMs = request.timeoutMs ?? LIMITS.approvalTimeoutMsDefault
  return {
    ...asked,
    ...pick(request, 'clientRequestId', 'toolName'),
    ...orNull(request, 'runId', 'sessionId', 'agentId', 'policyId', 'reason', 'toolCallId', 'policyVersion'),
    keyFamily,
    recordsInput: request.recordsInput === false ? 0 : null,
    hashScheme: request.inputHashScheme ?? null,
    inputHash: request.inputHash.toLowerCase(),
    timeoutMs,
    createdAt: now,
    expiresAt: now + timeoutMs,
  }
}

/**
 * Whether the request is still PENDING after its deadline. Call `expireOverdue` before you show it: the store must say
 * EXPIRED first.
 */
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

/**
 * Whether the client made the request. Any client can send any id, so the key's family must match too. Older requests have
 * none.
 */
export function isAsker(row: ApprovalRow, by: { clientId: string; keyFamily: string }): boolean {
  const isOfKey = row.keyFamily === null || row.keyFamily === by.keyFamily
  return isOfKey && row.clientId === by.clientId && row.importedAt === null
}

const NAMED = /^(?:run|withdrawn)-(.+)$/

/**
 * The approval that a record names by its id. `run-` is a claim: only the first one may run the call. `withdrawn-`
 * tells a resumed process that the call is withdrawn.
 */
export function claimedApproval({ clientRecordId }: Pick<NewIssueRecord, 'clientRecordId'>): string | null {
  const id = NAMED.exec(clientRecordId)?.[1]
  return id !== undefined && isUuid(id) ? id : null
}

const WITHDRAWN = 'The request was withdrawn, because the call that asked is gone: nothing runs under this approval'

/** The approval as clients get it: nothing may run under a withdrawn approval or an active stop, whatever a person decided. */
export function toApproval(row: ApprovalRow, stop: StopRow | null = null): Approval {
  const shown = { ...pick(row, 'id', 'status', 'decisionReason'), ...isoOf(row, 'expiresAt', 'decidedAt') }
  if (row.status !== 'APPROVED') return shown
  if (row.withdrawnAt !== null) return { ...shown, status: 'REJECTED', decisionReason: WITHDRAWN }
  return stop === null ? shown : { ...shown, status: 'REJECTED', decisionReason: stopMessage(stop) }
}

const STOPPED_AT_ONCE = 200

/**
 * Rejects all pending requests of a stopped scope. Returns how many. `onRejected` is called as soon as some are
 * rejected, because their clients wait.
 */
export async function rejectStopped(
  storage: Pick<Storage, 'rejectStopped'>,
  environmentId: string,
  now: number,
  onRejected: () => void = () => undefined,
): Promise<number> {
  let rejectedRequests = 0
  for (let after: string | undefined = NIL_UUID; after !== undefined;) {
    const { rejected, last } = await storage.rejectStopped(environmentId, { now, limit: STOPPED_AT_ONCE, after })
    if (rejected > 0) onRejected()
    rejectedRequests += rejected
    after = last ?? undefined
  }
  return rejectedRequests
}

function toWaiting(
  { status, importedAt, withdrawnAt, withdrawnReason, lastSeenAt, decidedAt }: ApprovalRow,
  now: number,
): Waiting {
  if (withdrawnAt !== null) return { state: 'withdrawn', lastSeenAt: isoTime(withdrawnAt), reason: withdrawnReason }
  return {
    state: waitingState({ status, importedAt, lastSeenAt, decidedAt }, now),
    lastSeenAt: isoTime(lastSeenAt),
    reason: null,
  }
}

function waitingState(
  {
    status,
    importedAt,
    lastSeenAt,
    decidedAt,
  }: Pick<ApprovalRow, 'status' | 'importedAt' | 'lastSeenAt' | 'decidedAt'>,
  now: number,
): Waiting['state'] {
  if (importedAt !== null || lastSeenAt === null) return 'unknown'
  if (status === 'PENDING') return now - lastSeenAt < LIMITS.approvalWaitingMs ? 'waiting' : 'stopped'
  const isDecided = status !== 'EXPIRED' && decidedAt !== null
  return isDecided && decidedAt - lastSeenAt >= LIMITS.approvalWaitingMs ? 'stopped' : 'unknown'
}

export function toOperatorApproval(row: ApprovalRow, agentName: string | null, now: number): OperatorApproval {
  const { deciderKind: kind, deciderId: id, deciderName: name, decidedVia: via } = row
  const first = firstApprovalOf(row)
  return {
    ...pick(
      row,
      'id',
      'status',
      'decisionReason',
      'grantId',
      'toolCallId',
      'clientId',
      'clientRequestId',
      'runId',
      'sessionId',
      'agentId',
      'policyId',
      'toolName',
      'inputHash',
    ),
    ...pick(row, 'reason', 'timeoutMs'),
    ...isoOf(row, 'createdAt', 'expiresAt', 'decidedAt', 'importedAt'),
    agentName,
    decidedBy: kind === null ? null : { kind, id: id ?? '', name: name ?? '', via },
    waiting: toWaiting(row, now),
    approvers: row.approvers === 2 ? 2 : 1,
    firstApproval: first && {
      by: pick(first, 'kind', 'id', 'name', 'via'),
      at: isoTime(first.at),
      reason: first.reason,
    },
  }
}

export function toAskedLately(requests: number): AskedLately {
  const { windowMs, burst, most } = ASKED_LATELY
  return { requests, capped: requests >= most, windowMs, burst: requests >= burst }
}

export function toApprovalGroup(row: ApprovalGroupRow): ApprovalGroup {
  return { ...row, ...isoOf(row, 'oldestExpiresAt', 'oldestCreatedAt') }
}

const KINDS = new Map<string, ApprovalNote['kind']>([
  ['POLICY_DECISION', 'input'],
  ['APPROVAL_WITHDRAWN', 'withdrawn'],
  ['TOOL_START', 'ran'],
  ['TOOL_CALL', 'ran'],
])
/** Maximum number of policy versions in a decision, which names all policies that matched. */
const VERSIONS_KEPT = 50

/** Facts that an event reports about the approval that it names; null: none. */
export function approvalNoteOf(eventType: string, payload: Json): ApprovalNote | null {
  const kind = KINDS.get(eventType)
  if (kind === undefined) return null
  const approvalId = textAt(payload, 'approvalId')?.toLowerCase()
  if (approvalId === undefined || !isUuid(approvalId)) return null
  const status = kind === 'ran' ? ranStatus(eventType, payload) : null
  if (kind === 'ran' && status === null) return null
  const policyVersions = kind === 'input' ? versionsIn(payload['policyVersions']) : null
  const isWithoutInput = kind === 'input' && !Object.hasOwn(payload, 'input')
  if (isWithoutInput && policyVersions === null) return null
  return {
    approvalId,
    kind: isWithoutInput ? 'policies' : kind,
    toolName: textAt(payload, 'toolName'),
    inputHash: textAt(payload, 'inputHash')?.toLowerCase() ?? null,
    policyVersions,
    reason: kind === 'withdrawn' ? (WITHDRAWN_REASONS.find((one) => one === payload['reason']) ?? 'cancelled') : null,
    status,
  }
}

/** How the call ran. Null: it never began. */
function ranStatus(eventType: string, { outcome, error }: Json): RanStatus | null {
  if (eventType === 'TOOL_START') return 'started'
  if (outcome === 'never_ran') return null
  const knownStatus = RAN_STATUSES.find((status) => status === outcome)
  return knownStatus ?? (error === undefined || error === null ? 'returned' : 'failed')
}

/** Null: unknown. Too many versions also count as unknown, because any policy left out may require something. */
export function versionsIn(value: unknown): Record<string, string> | null {
  if (!isObject(value)) return null
  const fits = (text: unknown): text is string =>
    typeof text === 'string' && hasAtMost(text, LIMITS.textChars) && isStorableText(text)
  const entries = Object.entries(value).filter((entry): entry is [string, string] => entry.every(fits))
  return entries.length > VERSIONS_KEPT ? null : Object.fromEntries(entries)
}
