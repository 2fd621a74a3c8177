import Type from 'typebox'
import { BODY_ERRORS } from '../body-errors.ts'
import { LIMITS } from '../limits.ts'
import type { OperatorRoute } from './access.ts'
import { ApprovalAftermath, RunApprovals } from './aftermath.ts'
import {
  ApprovalDetail,
  ApprovalChanges,
  ApprovalGroups,
  ApprovalPage,
  ApprovalSnapshot,
  ApprovalsQuery,
  DecisionOutcomes,
  NewDecision,
  NewDecisions,
  OperatorApproval,
  OperatorApprovalParams,
  StreamEnd,
} from './approval.ts'
import { EnvironmentParams } from './environment.ts'
import { OperatorRunParams } from './run.ts'

const common = { tag: 'Approvals', scopes: [], access: 'viewer' } as const
const write = { bodyBytes: LIMITS.operatorBodyBytes, access: 'approver' } as const
/** Firewall approvals, as operators see and decide them. */
export const approvalRoutes = {
  listApprovals: {
    ...common,
    method: 'GET',
    path: '/environments/{environmentId}/approvals',
    summary: 'List approvals: pending ones by deadline, the oldest first; otherwise the newest first',
    params: EnvironmentParams,
    query: ApprovalsQuery,
    status: 200,
    reply: ApprovalPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  listApprovalGroups: {
    ...common,
    method: 'GET',
    path: '/environments/{environmentId}/approvals/groups',
    summary: 'The queue: pending approvals by tool and input',
    params: EnvironmentParams,
    status: 200,
    reply: ApprovalGroups,
    errors: ['not_found'],
  },
  streamApprovals: {
    ...common,
    method: 'GET',
    path: '/environments/{environmentId}/approvals/stream',
    summary: 'Server-sent events: a snapshot of what is pending, then a hint at each change',
    params: EnvironmentParams,
    status: 200,
    reply: Type.Unsafe<string>({
      type: 'string',
      description: 'Events `snapshot` (ApprovalSnapshot), `changed` (ApprovalChanges) and `end` (StreamEnd)',
    }),
    replyType: 'text/event-stream',
    events: { snapshot: ApprovalSnapshot, changed: ApprovalChanges, end: StreamEnd },
    errors: ['not_found'],
  },
  readApproval: {
    ...common,
    method: 'GET',
    path: '/environments/{environmentId}/approvals/{approvalId}',
    summary: 'Read one approval, with the input that was recorded for it',
    params: OperatorApprovalParams,
    status: 200,
    reply: ApprovalDetail,
    errors: ['not_found'],
  },
  readApprovalAftermath: {
    ...common,
    method: 'GET',
    path: '/environments/{environmentId}/approvals/{approvalId}/aftermath',
    summary: 'What happened after the approval was asked for',
    params: OperatorApprovalParams,
    status: 200,
    reply: ApprovalAftermath,
    errors: ['not_found'],
  },
  decideApproval: {
    ...common,
    ...write,
    method: 'POST',
    path: '/environments/{environmentId}/approvals/{approvalId}/decision',
    summary: 'Approve or reject a pending approval',
    params: OperatorApprovalParams,
    body: NewDecision,
    status: 200,
    reply: OperatorApproval,
    errors: ['not_found', 'conflict', ...BODY_ERRORS],
  },
  decideApprovals: {
    ...common,
    ...write,
    method: 'POST',
    path: '/environments/{environmentId}/approvals/decisions',
    summary: 'Decide pending approvals of one tool and input together; each has an outcome of its own',
    params: EnvironmentParams,
    body: NewDecisions,
    status: 200,
    reply: DecisionOutcomes,
    errors: ['not_found', 'conflict', ...BODY_ERRORS],
  },
  listRunApprovals: {
    ...common,
    method: 'GET',
    path: '/environments/{environmentId}/runs/{runId}/approvals',
    summary: 'The approvals of a run and what happened after them, to be shown on its timeline',
    params: OperatorRunParams,
    status: 200,
    reply: RunApprovals,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
