import type { APPROVAL_FILTERS } from '@tacho/contract/approvals/approval-filters.ts'
import type { StoredFilter } from '@tacho/contract/web/filter.ts'
import type { ApprovalStatus, Decision } from '@tacho/contract/approvals/approval.ts'
import type { RanStatus, WithdrawnReason, GrantScope } from '@tacho/contract/engine/words.ts'
import type { ApprovalGroup } from '@tacho/contract/approvals/operator-approval.ts'
import { isoTime } from '../engine/times.ts'
import type { PageAfter, RowFor } from '../engine/page.ts'
import type { RowOf } from '../engine/tables.ts'

export interface ApprovalRow extends RowOf<'approvals'> {
  environmentId: string
  status: ApprovalStatus
  /** Null for EXPIRED too, because no person decided. */
  deciderKind: 'operator' | 'token' | null
  /** Null: decided in the operator API, or undecided. */
  decidedVia: 'slack' | 'grant' | null
  withdrawnReason: WithdrawnReason | null
  ranStatus: RanStatus | null
}

/** Facts that an event reports about an approval. Only the client and API key that made the request may report them. */
export interface ApprovalNote {
  approvalId: string
  kind: 'input' | 'policies' | 'withdrawn' | 'ran'
  toolName: string | null
  inputHash: string | null
  /** Versions of the policies that decided. */
  policyVersions: Readonly<Record<string, string>> | null
  reason: WithdrawnReason | null
  status: RanStatus | null
}

export const UNDECIDED = {
  status: 'PENDING',
  decidedAt: null,
  decisionReason: null,
  deciderKind: null,
  deciderId: null,
  deciderName: null,
  decidedVia: null,
  importedAt: null,
  inputEventId: null,
  withdrawnAt: null,
  withdrawnReason: null,
  ranAt: null,
  ranStatus: null,
  lastSeenAt: null,
  approvers: null,
  firstApproval: null,
  policyVersions: null,
  grantId: null,
  heldUntil: null,
} as const
export type NewApprovalRow = Omit<ApprovalRow, keyof typeof UNDECIDED | 'revision'>

/** Columns, besides the request itself, that show which policies asked. */
export interface AskedBeside {
  /** All policies that matched, as the client reports them; null: only the one that the request names. */
  policyVersions: Readonly<Record<string, string>> | null
  otherTools: OtherTools
}

/** Versions in force, `<policy id> <version>`, whose conditions cannot match the tool that asks. */
export type OtherTools = readonly string[]

/** Why no call may run under the approval; null: one may. */
export function claimFault({ status, withdrawnAt, expiresAt }: ApprovalRow, now: number): string | null {
  if (withdrawnAt !== null) return 'was withdrawn'
  if (status !== 'APPROVED') return `is ${status}`
  return expiresAt <= now ? `expired at ${isoTime(expiresAt)}` : null
}

export function approvalData(approval: ApprovalRow, agentName: string | null): Record<string, unknown> {
  const { environmentId, id, status, toolName, inputHash, agentId, runId, sessionId, policyId, reason } = approval
  const { decisionReason, deciderName, decidedVia, withdrawnAt, withdrawnReason } = approval
  const first = firstApprovalOf(approval)
  return {
    environmentId,
    approvalId: id,
    status,
    toolName,
    inputHash,
    agentId,
    runId,
    sessionId,
    policyId,
    reason,
    expiresAt: isoTime(approval.expiresAt),
    decidedAt: isoTime(approval.decidedAt),
    decisionReason,
    deciderName,
    decidedVia,
    agentName,
    approvers: approval.approvers ?? 1,
    firstApproval: first && { name: first.name, at: isoTime(first.at), reason: first.reason },
    ...(withdrawnAt !== null && { withdrawnAt: isoTime(withdrawnAt), withdrawnReason }),
  }
}

export type CreatedApproval =
  | { outcome: 'created' | 'existing' | 'conflict' | 'imported'; approval: ApprovalRow }
  | { outcome: 'erased'; approval: null }

export type ApprovalFilter = StoredFilter<typeof APPROVAL_FILTERS>

export type ApprovalPage = PageAfter<{ time: number; id: string }>

export interface GroupBounds {
  requests: number
  groups: number
}

export type ApprovalGroupRow = RowFor<ApprovalGroup>

export interface Requester {
  agentId: string | null
  clientId: string
}

export interface DecisionRow {
  status: Decision
  reason: string | null
  deciderKind: 'operator' | 'token'
  deciderId: string
  deciderName: string
  via: { kind: 'slack'; webhookId: string } | null
  now: number
  /**
   * By approval id: the input event that the operator saw; null: none. A request whose input event has changed since is not
   * decided.
   */
  inputs?: Readonly<Record<string, string | null>>
  /** Grant for later calls that the approval of one request creates. */
  grant?: NewGrant
  /**
   * Policies that cannot have asked for the tool of the approved requests. Absent: only policies that a request names
   * can have asked.
   */
  otherTools?: OtherTools
}

/** The first of two people who approve. */
export interface FirstApproval {
  kind: 'operator' | 'token'
  id: string
  name: string
  via: 'slack' | null
  /** Account of the person who decided, or who made the token. */
  person: string
  at: number
  reason: string | null
  /** The approved input. If it changes, the first approval is needed again. */
  inputEventId: string | null
}

/** Null: nobody has approved, or one approval is enough. */
export function firstApprovalOf({ firstApproval }: Pick<ApprovalRow, 'firstApproval'>): FirstApproval | null {
  return firstApproval === null ? null : (JSON.parse(firstApproval) as FirstApproval)
}

/**
 * `first`: recorded, and a second person decides. `same_person`, `runs_agent` and `no_person`: this person may not
 * approve, or it is unknown who has the token.
 */
export type Decided =
  | {
      id: string
      outcome: 'decided' | 'first' | 'refused' | 'changed' | 'same_person' | 'runs_agent' | 'no_person'
      approval: ApprovalRow
    }
  | { id: string; outcome: 'no_grant'; fault: GrantFault; approval: ApprovalRow }
  | { id: string; outcome: 'not_found'; approval: null }

export interface ApprovalRevision {
  environmentId: string
  revision: number
  /** The revision at which approvals were last removed; 0: never. */
  removedRevision: number
}

export interface ChangePlace {
  revision: number
  id: string
}

/** What a tool event's payload says by the payload conventions. Null: absent, or not a text. */
export interface ToolEventRow {
  seq: number
  eventId: string
  kind: 'TOOL_CALL' | 'POLICY_DECISION'
  label: string
  time: number
  receivedAt: number
  toolName: string | null
  inputHash: string | null
  approvalId: string | null
  action: string | null
  outcome: 'output' | 'error' | 'unknown'
  /** The model asked for the call, and the tool did not start. */
  neverRan: boolean
}

export interface SoughtInput {
  approvalId: string
  toolName: string
  inputHash: string
  until: number
  bounds: { rowsLookedAt: number; limit: number; pageBytes: number }
}

export interface InputOfRequest extends Pick<SoughtInput, 'approvalId' | 'toolName' | 'inputHash'> {
  runId: string
}

export interface InputsBounds {
  perRun: number
  bytes: number
}

/** The event of a run that contains the input of an approval. */
export interface LinkedInput {
  runId: string
  eventId: string
}

/** Number of a policy's expired requests. */
export interface UnansweredRow {
  policyId: string | null
  expired: number
  withdrawn: number
  lastExpiredAt: number
}

export interface RanBeforeRow {
  approvalId: string
  at: number
  status: RanStatus
}

export interface SeenApproval {
  id: string
  at: number
}

export interface RecordedInputRow {
  eventId: string
  receivedAt: number
  payload: string
}

/** A standing approval. Each use is a separate approval that names it. */
export interface GrantRow {
  id: string
  /** The approval that created the grant. */
  approvalId: string
  scope: GrantScope
  toolName: string
  /** The family of the API key that asked. */
  keyFamily: string
  runId: string | null
  agentId: string | null
  inputHash: string | null
  condition: string | null
  /** Versions in force, by policy id. The grant ends when one changes. */
  policies: Readonly<Record<string, number>>
  reason: string | null
  mostUses: number
  uses: number
  lastUsedAt: number | null
  createdAt: number
  expiresAt: number
  granterKind: 'operator' | 'token'
  granterId: string
  granterName: string
  endedAt: number | null
  /** When its run ended; null: the run continues, or the grant has no run. */
  runEndedAt: number | null
  /** Operator who revoked the grant; null: a policy changed. */
  endedBy: string | null
}

/** A grant that an operator creates with the approval of one call. */
export interface NewGrant {
  id: string
  scope: GrantScope
  condition: string | null
  mostUses: number
  expiresAt: number
}

/** Why a person can allow only the one call. */
export const GRANT_FAULTS = {
  no_key: 'the request is from before API keys were recorded, or was imported',
  no_run: 'the request names no run',
  no_agent: 'the request names no agent',
  no_policy: 'the request names no policy that is in force, or another version of it',
  never: 'its policy does not allow it: by default, one of severity CRITICAL does not',
  two_people: 'its policy needs two people',
  too_many: 'too many are in use in the environment: revoke some',
} as const
export type GrantFault = keyof typeof GRANT_FAULTS

/** A use of a grant: it approves one call. */
export interface GrantUse {
  grantId: string
  /** The known policies that require approval for this call. */
  policyIds: readonly string[]
  /** The input that was compared with the condition. */
  inputEventId: string | null
  now: number
}

/** Counts of stops and grants in the whole installation. */
export interface InForce {
  stops: number
  grants: number
  /** Calls that these grants have approved. */
  grantUses: number
}
