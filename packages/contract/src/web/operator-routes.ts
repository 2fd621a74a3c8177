import Type, { type Static } from 'typebox'
import { LIMITS } from '../engine/limits.ts'
import { closedBodies, type OperatorRoute } from './route.ts'
import { alertRoutes } from '../messages/alert.ts'
import { archiveRoutes } from '../data/archive.ts'
import { approvalRoutes } from '../approvals/approval-routes.ts'
import { grantRoutes } from '../approvals/grant.ts'
import { auditRoutes } from '../people/audit.ts'
import {
  ApiKey,
  ApiKeyChange,
  ApiKeyPage,
  ApiKeyParams,
  ApiKeyRotation,
  CreatedApiKey,
  NewApiKey,
} from '../tenants/api-key.ts'
import { CompletenessPage, CompletenessQuery } from '../record/completeness.ts'
import { deploymentRoutes } from '../policies/deployment.ts'
import {
  Environment,
  EnvironmentPage,
  EnvironmentParams,
  ArchivableQuery,
  ListQuery,
  NewName,
  Workspace,
  WorkspacePage,
  WorkspaceParams,
} from '../tenants/workspace.ts'
import { erasureRoutes } from '../data/erasure.ts'
import { CreationHeaders } from './fields.ts'
import { exportRoutes } from '../data/export.ts'
import { issueRoutes } from '../issues/issue-routes.ts'
import {
  BlindQuery,
  EventRowPage,
  EventRowsQuery,
  EventTrace,
  OperatorEvent,
  OperatorEventParams,
  OperatorRun,
  OperatorRunPage,
  OperatorRunParams,
  OperatorRunsQuery,
  RunProblemPage,
  RunProblemsQuery,
} from '../runs/operator-run.ts'
import { RunSearchPage, RunSearchQuery, searchRoutes } from '../runs/search.ts'
import { retentionRoutes } from '../data/retention.ts'
import { agentRoutes } from '../runs/agent.ts'
import { runViewRoutes } from '../runs/run-view.ts'
import { meRoutes } from '../people/me.ts'
import { notificationRoutes } from '../messages/notification.ts'
import { operatorRoutes } from '../people/operator.ts'
import { policyRoutes } from '../policies/policy.ts'
import { priceRoutes } from '../runs/price.ts'
import { promptRoutes } from '../policies/prompt.ts'
import { simulationRoutes } from '../policies/simulation.ts'
import { scoreRoutes } from '../runs/score.ts'
import { signInRoutes } from '../people/sign-in.ts'
import { stopRoutes } from '../policies/stop.ts'
import { stalledRuleRoutes } from '../runs/stalled-rule.ts'
import { toolLabelRoutes } from '../policies/tool-labels.ts'
import { tokenRoutes } from '../people/token.ts'
import { UsagePage, UsagePointPage, UsagePointsQuery, UsageQuery } from '../runs/usage.ts'
import { slackLinkRoutes } from '../messages/slack-link.ts'
import { webhookRoutes } from '../messages/webhook.ts'

export const Check = Type.Object(
  {
    name: Type.String(),
    ok: Type.Boolean(),
    detail: Type.String({ description: 'The result, and what to do if it is not ok' }),
  },
  { $id: 'Check', description: 'One check of the installation' },
)
export type Check = Static<typeof Check>

export const DoctorReport = Type.Object(
  { ok: Type.Boolean(), version: Type.String(), checks: Type.Array(Check) },
  { $id: 'DoctorReport' },
)
export type DoctorReport = Static<typeof DoctorReport>

export const OPERATOR_PREFIX = '/operator/v1'

const read = { method: 'GET', access: 'viewer', scopes: [], status: 200 } as const
const write = { method: 'POST', access: 'admin', bodyBytes: LIMITS.operatorBodyBytes, scopes: [] } as const
const keys = { tag: 'API keys', params: EnvironmentParams } as const
const key = { tag: 'API keys', params: ApiKeyParams } as const
const runs = { tag: 'Runs', params: EnvironmentParams } as const
const run = { tag: 'Runs', params: OperatorRunParams } as const

/** Every endpoint of the operator API. Authentication: `Authorization: Bearer <operator token>` or a session cookie. */
export const OPERATOR_ROUTES = closedBodies({
  listWorkspaces: {
    ...read,
    tag: 'Tenants',
    access: 'signed-in',
    path: '/workspaces',
    summary: 'List workspaces',
    query: ArchivableQuery,
    reply: WorkspacePage,
    errors: ['invalid_cursor'],
  },
  createWorkspace: {
    ...write,
    tag: 'Tenants',
    access: 'installation',
    path: '/workspaces',
    audit: { action: 'workspace.create', target: 'workspace' },
    summary: 'Create a workspace',
    headers: CreationHeaders,
    body: NewName,
    status: 201,
    reply: Workspace,
    errors: ['conflict'],
  },
  listEnvironments: {
    ...read,
    tag: 'Tenants',
    path: '/workspaces/{workspaceId}/environments',
    summary: 'List the environments of a workspace',
    params: WorkspaceParams,
    query: ArchivableQuery,
    reply: EnvironmentPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  createEnvironment: {
    ...write,
    tag: 'Tenants',
    path: '/workspaces/{workspaceId}/environments',
    audit: { action: 'environment.create', target: 'environment' },
    summary: 'Create an environment',
    params: WorkspaceParams,
    headers: CreationHeaders,
    body: NewName,
    status: 201,
    reply: Environment,
    errors: ['not_found', 'conflict'],
  },
  listApiKeys: {
    ...read,
    ...keys,
    path: '/environments/{environmentId}/keys',
    summary: 'List the API keys of an environment',
    query: ListQuery,
    reply: ApiKeyPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  createApiKey: {
    ...write,
    ...keys,
    path: '/environments/{environmentId}/keys',
    audit: { action: 'api_key.create', target: 'api_key' },
    summary: 'Create an API key; the reply shows it once',
    headers: CreationHeaders,
    body: NewApiKey,
    status: 201,
    reply: CreatedApiKey,
    shownOnce: 'key',
    errors: ['not_found', 'conflict'],
  },
  changeApiKey: {
    ...write,
    ...key,
    path: '/environments/{environmentId}/keys/{keyId}/change',
    audit: { action: 'api_key.change', target: 'api_key' },
    summary: 'Change the name, rate, expiry or scopes of an API key; scopes can only be removed',
    body: ApiKeyChange,
    status: 200,
    reply: ApiKey,
    errors: ['not_found', 'conflict'],
  },
  rotateApiKey: {
    ...write,
    ...key,
    path: '/environments/{environmentId}/keys/{keyId}/rotate',
    audit: { action: 'api_key.rotate', target: 'api_key' },
    summary:
      'Create a key that replaces an API key; the old one stays valid for a time. The reply shows the new key once',
    headers: CreationHeaders,
    body: ApiKeyRotation,
    status: 201,
    reply: CreatedApiKey,
    shownOnce: 'key',
    errors: ['not_found', 'conflict'],
  },
  revokeApiKey: {
    ...key,
    method: 'POST',
    access: 'admin',
    path: '/environments/{environmentId}/keys/{keyId}/revoke',
    audit: { action: 'api_key.revoke', target: 'api_key' },
    summary: 'Revoke an API key; all nodes reject it within 5 seconds',
    scopes: [],
    status: 200,
    reply: ApiKey,
    errors: ['not_found'],
  },
  listOperatorRuns: {
    ...read,
    ...runs,
    path: '/environments/{environmentId}/runs',
    summary: 'List and search runs, by agent, session, status and time',
    query: OperatorRunsQuery,
    reply: OperatorRunPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  readOperatorRun: {
    ...read,
    ...run,
    path: '/environments/{environmentId}/runs/{runId}',
    summary: 'Read one run',
    query: BlindQuery,
    reply: OperatorRun,
    errors: ['not_found'],
  },
  listEventRows: {
    ...read,
    ...run,
    path: '/environments/{environmentId}/runs/{runId}/events',
    summary: 'List timeline rows without payloads, by time or live in arrival order; filter by type and label',
    query: EventRowsQuery,
    reply: EventRowPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  listRunProblems: {
    ...read,
    ...run,
    path: '/environments/{environmentId}/runs/{runId}/problems',
    summary:
      'List the events of a run that a person should look at, by time: errors, blocked calls, calls that needed approval',
    query: RunProblemsQuery,
    reply: RunProblemPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  searchRun: {
    ...read,
    ...run,
    path: '/environments/{environmentId}/runs/{runId}/search',
    summary: 'Search the labels and payloads of one run, by time, without an index',
    query: RunSearchQuery,
    reply: RunSearchPage,
    // 0: a search waits for its own turn, so it must not occupy one of the few slots for pages.
    replyBytes: 0,
    errors: ['not_found', 'invalid_cursor'],
  },
  readEvent: {
    ...read,
    path: '/environments/{environmentId}/runs/{runId}/events/{eventId}',
    summary: 'Read one event with its payload',
    tag: 'Runs',
    params: OperatorEventParams,
    reply: OperatorEvent,
    errors: ['not_found'],
  },
  traceEvent: {
    ...read,
    path: '/environments/{environmentId}/runs/{runId}/events/{eventId}/trace',
    summary: 'Read what happened to one event',
    tag: 'Doctor',
    params: OperatorEventParams,
    reply: EventTrace,
    errors: ['not_found'],
  },
  readUsage: {
    ...read,
    ...runs,
    path: '/environments/{environmentId}/usage',
    summary: 'Hourly usage by agent and model',
    query: UsageQuery,
    reply: UsagePage,
    errors: ['not_found'],
  },
  readUsagePoints: {
    ...read,
    ...runs,
    path: '/environments/{environmentId}/usage/points',
    summary: 'Usage over time by agent, model or prompt version: runs by outcome, tokens, cost and latency',
    query: UsagePointsQuery,
    reply: UsagePointPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  readCompleteness: {
    ...read,
    ...runs,
    path: '/environments/{environmentId}/completeness',
    summary: 'Events that did not arrive, by client or agent, with the reasons: the greatest loss first',
    query: CompletenessQuery,
    reply: CompletenessPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  createBackup: {
    method: 'POST',
    access: 'installation',
    path: '/backups',
    audit: { action: 'backup.create', target: 'backup' },
    summary: 'Take a consistent backup of the embedded store and download it',
    tag: 'Operation',
    scopes: [],
    status: 200,
    reply: Type.Unsafe<Uint8Array>({ type: 'string', format: 'binary' }),
    replyType: 'application/vnd.sqlite3',
    errors: ['conflict', 'storage_full'],
  },
  readDoctor: {
    ...read,
    access: 'installation',
    path: '/doctor',
    summary: 'Check the installation',
    tag: 'Doctor',
    reply: DoctorReport,
    // 0: the reply is small, and concurrent requests share it.
    replyBytes: 0,
    errors: [],
  },
  ...archiveRoutes,
  ...meRoutes,
  ...signInRoutes,
  ...operatorRoutes,
  ...tokenRoutes,
  ...auditRoutes,
  ...approvalRoutes,
  ...grantRoutes,
  ...issueRoutes,
  ...promptRoutes,
  ...policyRoutes,
  ...deploymentRoutes,
  ...stopRoutes,
  ...toolLabelRoutes,
  ...simulationRoutes,
  ...webhookRoutes,
  ...slackLinkRoutes,
  ...notificationRoutes,
  ...agentRoutes,
  ...runViewRoutes,
  ...retentionRoutes,
  ...scoreRoutes,
  ...searchRoutes,
  ...stalledRuleRoutes,
  ...priceRoutes,
  ...erasureRoutes,
  ...alertRoutes,
  ...exportRoutes,
} as const satisfies Record<string, OperatorRoute>)
