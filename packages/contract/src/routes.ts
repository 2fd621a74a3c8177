import { BODY_ERRORS } from './body-errors.ts'
import { Approval, ApprovalHeaders, ApprovalParams, ApprovalQuery, NewApproval } from './approval.ts'
import { BatchResult, EventBatch, EventPage, EventsQuery } from './event.ts'
import { IssueRecordInput, IssueRecordReceipt } from './issue-record.ts'
import { LIMITS } from './limits.ts'
import type { Route } from './route.ts'
import { RunDetail, RunPage, RunParams, RunsQuery } from './run.ts'
import { RuntimeConfig } from './runtime-config.ts'

export const PUBLIC_PREFIX = '/openapi/v1'

/** Every endpoint of the public interface (interface: "Endpoints"). */
export const ROUTES = {
  recordEvents: {
    method: 'POST',
    path: '/events/batch',
    summary: 'Record 1 to 100 events',
    tag: 'Events',
    scopes: ['events:write'],
    body: EventBatch,
    bodyBytes: LIMITS.batchBytes,
    status: 200,
    reply: BatchResult,
    errors: BODY_ERRORS,
  },
  listRuns: {
    method: 'GET',
    path: '/runs',
    summary: 'List runs, newest first',
    tag: 'Runs',
    scopes: ['usage:read'],
    query: RunsQuery,
    status: 200,
    reply: RunPage,
    errors: ['invalid_cursor'],
  },
  readRun: {
    method: 'GET',
    path: '/runs/{runId}',
    summary: 'Read one run with its first events',
    tag: 'Runs',
    scopes: ['usage:read'],
    params: RunParams,
    status: 200,
    reply: RunDetail,
    replyBytes: LIMITS.pageBytes,
    errors: ['not_found'],
  },
  listRunEvents: {
    method: 'GET',
    path: '/runs/{runId}/events',
    summary: 'Read further events of a run',
    tag: 'Runs',
    scopes: ['usage:read'],
    params: RunParams,
    query: EventsQuery,
    status: 200,
    reply: EventPage,
    replyBytes: LIMITS.pageBytes,
    errors: ['not_found', 'invalid_cursor'],
  },
  submitIssueRecord: {
    method: 'POST',
    path: '/issue-records',
    summary: 'Submit a detection or recovery, to be reviewed in the background',
    tag: 'Issues',
    scopes: ['events:write'],
    body: IssueRecordInput,
    bodyBytes: LIMITS.issueRecordBytes,
    status: 202,
    reply: IssueRecordReceipt,
    errors: ['conflict', ...BODY_ERRORS, 'storage_full'],
  },
  createApproval: {
    method: 'POST',
    path: '/firewall-approvals',
    summary: 'Request approval for one protected tool call; a retry returns the same approval',
    tag: 'Approvals',
    scopes: ['events:write'],
    headers: ApprovalHeaders,
    body: NewApproval,
    bodyBytes: LIMITS.approvalBodyBytes,
    status: 201,
    reply: Approval,
    errors: ['conflict', ...BODY_ERRORS, 'storage_full'],
  },
  readApproval: {
    method: 'GET',
    path: '/firewall-approvals/{approvalId}',
    summary: 'Read the state of an approval, immediately or as soon as it changes',
    tag: 'Approvals',
    scopes: ['policies:read'],
    params: ApprovalParams,
    query: ApprovalQuery,
    headers: ApprovalHeaders,
    status: 200,
    reply: Approval,
    errors: ['not_found'],
  },
  loadRuntimeConfig: {
    method: 'GET',
    path: '/runtime-config',
    summary: 'Load the deployed prompts and policies',
    tag: 'Runtime configuration',
    scopes: ['config:read', 'policies:read'],
    status: 200,
    reply: RuntimeConfig,
    tagged: true,
    errors: [],
  },
} as const satisfies Record<string, Route>
