import Type from 'typebox'
import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/route.ts'
import { ApprovalAftermath, HindsightPage, HindsightQuery, RunApprovals } from './aftermath.ts'
import {
  ApprovalDetail,
  ApprovalChanges,
  ApprovalGroups,
  ApprovalPage,
  ApprovalSnapshot,
  ApprovalsQuery,
  OperatorApproval,
  OperatorApprovalParams,
  StreamEnd,
} from './operator-approval.ts'
import { AskingPolicies, UnansweredQuery, UnansweredRequests } from './asking-policies.ts'
import { DecisionOutcomes, NewDecision, NewDecisions } from './approval-decision.ts'
import { Proposal, ProposalParams, ProposalQuery } from './proposal.ts'
import { EnvironmentParams } from '../tenants/workspace.ts'
import { OperatorRunParams } from '../runs/operator-run.ts'

const common = { tag: 'Approvals', scopes: [], status: 200 } as const
const read = { ...common, method: 'GET', access: 'viewer' } as const
const decide = {
  ...common,
  method: 'POST',
  access: 'approver',
  bodyBytes: LIMITS.operatorBodyBytes,
  errors: ['not_found', 'conflict'],
} as const

/** Routes for operators who read and decide firewall approvals. */
export const approvalRoutes = {
  listApprovals: {
    ...read,
    path: '/environments/{environmentId}/approvals',
    summary: 'List approvals: pending ones by deadline, oldest first; otherwise newest first',
    params: EnvironmentParams,
    query: ApprovalsQuery,
    reply: ApprovalPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  listApprovalGroups: {
    ...read,
    path: '/environments/{environmentId}/approvals/groups',
    summary: 'List pending approvals, grouped by tool and input',
    params: EnvironmentParams,
    reply: ApprovalGroups,
    errors: ['not_found'],
  },
  countUnansweredRequests: {
    ...read,
    path: '/environments/{environmentId}/approvals/unanswered',
    summary: 'Count the requests that expired undecided, by policy',
    params: EnvironmentParams,
    query: UnansweredQuery,
    reply: UnansweredRequests,
    errors: ['not_found'],
  },
  listAskingPolicies: {
    ...read,
    path: '/environments/{environmentId}/approvals/asked',
    summary: 'Count by policy how often it asked, how fast people answered, and how many they rejected',
    params: EnvironmentParams,
    query: UnansweredQuery,
    reply: AskingPolicies,
    errors: ['not_found'],
  },
  proposeCondition: {
    ...read,
    path: '/environments/{environmentId}/policies/{policyId}/proposal',
    summary:
      'Propose the narrower condition of a policy that asks least and keeps every rejection, from what people decided',
    params: ProposalParams,
    query: ProposalQuery,
    reply: Proposal,
    errors: ['not_found', 'overloaded'],
  },
  listApprovalHindsight: {
    ...read,
    path: '/environments/{environmentId}/approvals/hindsight',
    summary: 'List closed requests, the newest first, with what became of each: whether it ran, when, and how it went',
    params: EnvironmentParams,
    query: HindsightQuery,
    reply: HindsightPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  streamApprovals: {
    ...read,
    path: '/environments/{environmentId}/approvals/stream',
    summary:
      'Stream approvals as server-sent events: a snapshot of pending ones, a hint at each change, and a new snapshot after an erasure',
    params: EnvironmentParams,
    reply: Type.Unsafe<string>({
      type: 'string',
      description: 'Events `snapshot` (ApprovalSnapshot), `changed` (ApprovalChanges) and `end` (StreamEnd)',
    }),
    replyType: 'text/event-stream',
    events: { snapshot: ApprovalSnapshot, changed: ApprovalChanges, end: StreamEnd },
    errors: ['not_found'],
  },
  readApproval: {
    ...read,
    path: '/environments/{environmentId}/approvals/{approvalId}',
    summary: 'Read one approval with its recorded input',
    params: OperatorApprovalParams,
    reply: ApprovalDetail,
    errors: ['not_found'],
  },
  readApprovalAftermath: {
    ...read,
    path: '/environments/{environmentId}/approvals/{approvalId}/aftermath',
    summary: 'Read what happened after the approval was requested',
    params: OperatorApprovalParams,
    reply: ApprovalAftermath,
    errors: ['not_found'],
  },
  decideApproval: {
    ...decide,
    path: '/environments/{environmentId}/approvals/{approvalId}/decision',
    summary: 'Approve or reject a pending approval',
    params: OperatorApprovalParams,
    body: NewDecision,
    reply: OperatorApproval,
  },
  decideApprovals: {
    ...decide,
    path: '/environments/{environmentId}/approvals/decisions',
    summary: 'Decide several pending approvals of one tool and input; each gets its own outcome',
    params: EnvironmentParams,
    body: NewDecisions,
    reply: DecisionOutcomes,
  },
  listRunApprovals: {
    ...read,
    path: '/environments/{environmentId}/runs/{runId}/approvals',
    summary: 'List the approvals of a run and what happened after them, for its timeline',
    params: OperatorRunParams,
    reply: RunApprovals,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
