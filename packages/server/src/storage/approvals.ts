import type { ApprovalStatus, Decision } from '@tacho/contract/approval.ts'
import type { RowOf } from './tables.ts'

/** The row that tables.ts describes. */
export interface ApprovalRow extends RowOf<'approvals'> {
  environmentId: string
  inputHash: string
  status: ApprovalStatus
  /** Null for EXPIRED too, because no person decided. */
  decidedAt: number | null
  deciderKind: DeciderKind | null
  /** Null: in the operator API, or undecided. */
  decidedVia: DecidedVia | null
  /** When an import brought it; null: a client sent it here. Clients never get an imported one, and nobody decides it. */
  importedAt: number | null
  /** Increases across the environment with each change. It identifies this approval's last change. */
  revision: number
}

/** The members that a request does not have yet. */
type Later =
  | 'status'
  | 'decidedAt'
  | 'decisionReason'
  | 'deciderKind'
  | 'deciderId'
  | 'deciderName'
  | 'decidedVia'
  | 'importedAt'
  | 'revision'
export type NewApprovalRow = Omit<ApprovalRow, Later>

export type DeciderKind = 'operator' | 'token'
export type DecidedVia = 'slack'

const isoTime = (time: number | null) => (time === null ? null : new Date(time).toISOString())

/** What messages say of it. `agentName`: as operators see it. */
export function approvalData(approval: ApprovalRow, agentName: string | null): Record<string, unknown> {
  const { environmentId, id, status, toolName, inputHash, agentId, runId, sessionId, policyId, reason } = approval
  const { decisionReason, deciderName, decidedVia } = approval
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
  }
}

export type CreatedApproval =
  | { outcome: 'created' | 'existing'; approval: ApprovalRow }
  | { outcome: 'conflict' | 'imported'; approval: ApprovalRow }
  | { outcome: 'erased'; approval: null }

export interface ApprovalFilter {
  status?: ApprovalStatus | undefined
  toolName?: string | undefined
  inputHash?: string | undefined
  agentId?: string | undefined
  policyId?: string | undefined
  runId?: string | undefined
}

export interface ApprovalPage {
  limit: number
  /** Rows after this place. `time` is the sort column. Null for the first page. */
  after: { time: number; id: string } | null
}

export interface GroupBounds {
  requests: number
  groups: number
}

export interface ApprovalGroupRow {
  toolName: string
  inputHash: string
  requests: number
  runs: number
  agents: number
  policies: number
  oldestExpiresAt: number
  oldestCreatedAt: number
}

/** An agent is its id. Requests without an agent id count for their client. */
export interface Requester {
  agentId: string | null
  clientId: string
}

export interface DecisionRow {
  status: Decision
  reason: string | null
  deciderKind: DeciderKind
  deciderId: string
  deciderName: string
  /** The webhook whose message had the button. Its Slack channel sees the decision in that message. */
  via: { kind: DecidedVia; webhookId: string } | null
  now: number
}

export type Decided =
  | { id: string; outcome: 'decided' | 'refused'; approval: ApprovalRow }
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

/**
 * What a TOOL_CALL or POLICY_DECISION says about approvals, by the payload conventions. Null: absent, or not a text.
 */
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
}

export interface ToolEventPage {
  limit: number
  /** A page ends at this many bytes of payload, with at least one row. */
  pageBytes: number
  after: { time: number; seq: number } | null
}

export interface ToolEventsRead {
  rows: ToolEventRow[]
  more: boolean
}

export interface SoughtInput {
  /** In lower case, the way this service issues ids. */
  approvalId: string
  toolName: string
  inputHash: string
  /** Time of the newest event to examine, in milliseconds. */
  until: number
  /** Limits for the search: events of the run, policy decisions among them, and bytes of their payloads. */
  bounds: { rowsLookedAt: number; limit: number; pageBytes: number }
}

export interface RecordedInputRow {
  eventId: string
  receivedAt: number
  payload: string
}
