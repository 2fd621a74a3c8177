import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/route.ts'
import { EnvironmentParams } from '../tenants/workspace.ts'
import { CreationHeaders } from '../web/fields.ts'
import {
  IssueRecord,
  IssueRecordDetail,
  IssueRecordPage,
  IssueRecordParams,
  IssueRecordsQuery,
} from './operator-issue-record.ts'
import {
  AffectedAgentPage,
  AffectedRunPage,
  Assignment,
  IgnoreQuery,
  Issue,
  IssueActivity,
  IssueActivityPage,
  IssuePage,
  IssueParams,
  IssuePartsQuery,
  IssuesQuery,
  IssueTrends,
  IssueTrendsQuery,
  Merge,
  NewComment,
  Split,
} from './issue.ts'

const read = { method: 'GET', scopes: [], access: 'viewer', status: 200, tag: 'Issues' } as const
const change = { method: 'POST', scopes: [], access: 'approver', status: 200, tag: 'Issues' } as const
const body = { bodyBytes: LIMITS.operatorBodyBytes } as const
const partRoute = {
  ...read,
  params: IssueParams,
  query: IssuePartsQuery,
  errors: ['not_found', 'invalid_cursor'],
} as const
const act = { ...change, params: IssueParams, reply: Issue, errors: ['not_found', 'conflict'] } as const
const ISSUES = '/environments/{environmentId}/issues'
const ISSUE = `${ISSUES}/{issueId}` as const
const RECORDS = '/environments/{environmentId}/issue-records'

export const issueRoutes = {
  listIssues: {
    ...read,
    path: ISSUES,
    summary: 'List issues, most recently seen first',
    params: EnvironmentParams,
    query: IssuesQuery,
    reply: IssuePage,
    errors: ['not_found', 'invalid_cursor'],
  },
  listIssueTrends: {
    ...read,
    path: `${ISSUES}/trends`,
    summary: 'Count the detections of issues by day',
    params: EnvironmentParams,
    query: IssueTrendsQuery,
    reply: IssueTrends,
    errors: ['not_found'],
  },
  readIssue: {
    ...read,
    path: ISSUE,
    summary: 'Read one issue and why its records are grouped together',
    params: IssueParams,
    reply: Issue,
    errors: ['not_found'],
  },
  listOccurrences: {
    ...partRoute,
    path: `${ISSUE}/occurrences`,
    summary: 'List the detections of an issue, latest first',
    reply: IssueRecordPage,
  },
  listRecoveries: {
    ...partRoute,
    path: `${ISSUE}/recoveries`,
    summary: 'List the recoveries reported for an issue, latest first',
    reply: IssueRecordPage,
  },
  listAffectedRuns: {
    ...partRoute,
    path: `${ISSUE}/runs`,
    summary: 'List the runs in which an issue was detected, latest first',
    reply: AffectedRunPage,
  },
  listAffectedAgents: {
    ...partRoute,
    path: `${ISSUE}/agents`,
    summary: 'List the agents of an issue, latest first',
    reply: AffectedAgentPage,
  },
  listIssueActivity: {
    ...partRoute,
    path: `${ISSUE}/activity`,
    summary: 'List comments on an issue and its history, latest first',
    reply: IssueActivityPage,
  },
  commentIssue: {
    ...change,
    ...body,
    path: `${ISSUE}/comments`,
    audit: { action: 'issue.comment', target: 'issue' },
    summary: 'Comment on an issue',
    params: IssueParams,
    headers: CreationHeaders,
    body: NewComment,
    status: 201,
    reply: IssueActivity,
    errors: ['not_found', 'conflict'],
  },
  resolveIssue: {
    ...act,
    path: `${ISSUE}/resolve`,
    audit: { action: 'issue.resolve', target: 'issue' },
    summary: 'Resolve an open issue; the next detection reopens it as a regression',
  },
  ignoreIssue: {
    ...act,
    path: `${ISSUE}/ignore`,
    audit: { action: 'issue.ignore', target: 'issue' },
    summary: 'Ignore an open issue, for good or until a time; detections are still counted',
    query: IgnoreQuery,
  },
  reopenIssue: {
    ...act,
    path: `${ISSUE}/reopen`,
    audit: { action: 'issue.reopen', target: 'issue' },
    summary: 'Reopen a resolved or ignored issue',
  },
  assignIssue: {
    ...act,
    ...body,
    path: `${ISSUE}/assign`,
    audit: { action: 'issue.assign', target: 'issue' },
    summary: 'Assign an issue to a person',
    body: Assignment,
  },
  mergeIssue: {
    ...act,
    ...body,
    path: `${ISSUE}/merge`,
    audit: { action: 'issue.merge', target: 'issue' },
    summary: 'Merge an issue into another; later records go there too. The reply is the other issue',
    body: Merge,
  },
  splitIssue: {
    ...act,
    ...body,
    path: `${ISSUE}/split`,
    audit: { action: 'issue.split', target: 'issue' },
    summary: 'Split sets of facts off an issue. The reply is the issue that now has them',
    body: Split,
  },
  listIssueRecords: {
    ...read,
    path: RECORDS,
    summary: 'List issue records, most recently received first',
    params: EnvironmentParams,
    query: IssueRecordsQuery,
    reply: IssueRecordPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  readIssueRecord: {
    ...read,
    path: `${RECORDS}/{recordId}`,
    summary: 'Read one issue record with its payload and evidence',
    params: IssueRecordParams,
    reply: IssueRecordDetail,
    errors: ['not_found'],
  },
  retryIssueRecord: {
    ...change,
    path: `${RECORDS}/{recordId}/retry`,
    audit: { action: 'issue_record.retry', target: 'issue_record' },
    summary: 'Review a failed record again',
    params: IssueRecordParams,
    reply: IssueRecord,
    errors: ['not_found', 'conflict'],
  },
} as const satisfies Record<string, OperatorRoute>
