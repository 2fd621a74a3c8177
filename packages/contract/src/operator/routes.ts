import Type from 'typebox'
import { BODY_ERRORS } from '../body-errors.ts'
import { LIMITS } from '../limits.ts'
import type { OperatorRoute } from './access.ts'
import { alertRoutes } from './alert-routes.ts'
import { archiveRoutes } from './archive-routes.ts'
import { approvalRoutes } from './approval-routes.ts'
import { auditRoutes } from './audit-routes.ts'
import { ApiKey, ApiKeyChange, ApiKeyPage, ApiKeyParams, ApiKeyRotation, CreatedApiKey, NewApiKey } from './api-key.ts'
import { CompletenessPage, CompletenessQuery } from './completeness.ts'
import { deploymentRoutes } from './deployment-routes.ts'
import { DoctorReport } from './doctor.ts'
import { Environment, EnvironmentPage, EnvironmentParams } from './environment.ts'
import { erasureRoutes } from './erasure-routes.ts'
import { CreationHeaders } from './idempotency.ts'
import { exportRoutes } from './export-routes.ts'
import { issueRoutes } from './issue-routes.ts'
import {
  EventRowPage,
  EventRowsQuery,
  EventTrace,
  OperatorEvent,
  OperatorEventParams,
  OperatorRun,
  OperatorRunPage,
  OperatorRunParams,
  OperatorRunsQuery,
} from './run.ts'
import { RunProblemPage, RunProblemsQuery } from './run-problem.ts'
import { RunSearchPage, RunSearchQuery } from './run-search.ts'
import { retentionRoutes } from './retention-routes.ts'
import { agentRoutes } from './agent-routes.ts'
import { runViewRoutes } from './run-view-routes.ts'
import { meRoutes } from './me-routes.ts'
import { notificationRoutes } from './notification-routes.ts'
import { operatorRoutes } from './operator-routes.ts'
import { policyRoutes } from './policy-routes.ts'
import { priceRoutes } from './price-routes.ts'
import { promptRoutes } from './prompt-routes.ts'
import { simulationRoutes } from './simulation-routes.ts'
import { searchRoutes } from './search-routes.ts'
import { scoreRoutes } from './score-routes.ts'
import { signInRoutes } from './sign-in-routes.ts'
import { stalledRuleRoutes } from './stalled-rule-routes.ts'
import { tokenRoutes } from './token-routes.ts'
import { UsagePage, UsagePointPage, UsagePointsQuery, UsageQuery } from './usage.ts'
import { slackLinkRoutes } from './slack-link-routes.ts'
import { webhookRoutes } from './webhook-routes.ts'
import { ArchivableQuery, ListQuery, NewName, Workspace, WorkspacePage, WorkspaceParams } from './workspace.ts'

export const OPERATOR_PREFIX = '/operator/v1'

const write = { bodyBytes: LIMITS.operatorBodyBytes, scopes: [] } as const
/** Every endpoint of the operator API. Authentication: `Authorization: Bearer <operator token>` or a session cookie. */
export const OPERATOR_ROUTES = {
  listWorkspaces: {
    method: 'GET',
    access: 'signed-in',
    path: '/workspaces',
    summary: 'List workspaces',
    tag: 'Tenants',
    scopes: [],
    query: ArchivableQuery,
    status: 200,
    reply: WorkspacePage,
    errors: ['invalid_cursor'],
  },
  createWorkspace: {
    ...write,
    method: 'POST',
    access: 'installation',
    path: '/workspaces',
    summary: 'Create a workspace',
    tag: 'Tenants',
    headers: CreationHeaders,
    body: NewName,
    status: 201,
    reply: Workspace,
    errors: ['conflict', ...BODY_ERRORS],
  },
  listEnvironments: {
    method: 'GET',
    access: 'viewer',
    path: '/workspaces/{workspaceId}/environments',
    summary: 'List the environments of a workspace',
    tag: 'Tenants',
    scopes: [],
    params: WorkspaceParams,
    query: ArchivableQuery,
    status: 200,
    reply: EnvironmentPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  createEnvironment: {
    ...write,
    method: 'POST',
    access: 'admin',
    path: '/workspaces/{workspaceId}/environments',
    summary: 'Create an environment',
    tag: 'Tenants',
    params: WorkspaceParams,
    headers: CreationHeaders,
    body: NewName,
    status: 201,
    reply: Environment,
    errors: ['not_found', 'conflict', ...BODY_ERRORS],
  },
  listApiKeys: {
    method: 'GET',
    access: 'viewer',
    path: '/environments/{environmentId}/keys',
    summary: 'List the API keys of an environment',
    tag: 'API keys',
    scopes: [],
    params: EnvironmentParams,
    query: ListQuery,
    status: 200,
    reply: ApiKeyPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  createApiKey: {
    ...write,
    method: 'POST',
    access: 'admin',
    path: '/environments/{environmentId}/keys',
    summary: 'Create an API key; the reply shows it once',
    tag: 'API keys',
    params: EnvironmentParams,
    headers: CreationHeaders,
    body: NewApiKey,
    status: 201,
    reply: CreatedApiKey,
    shownOnce: 'key',
    errors: ['not_found', 'conflict', ...BODY_ERRORS],
  },
  changeApiKey: {
    ...write,
    method: 'POST',
    access: 'admin',
    path: '/environments/{environmentId}/keys/{keyId}/change',
    summary: 'Change the name, rate, expiry or scopes of an API key; scopes can only be removed',
    tag: 'API keys',
    params: ApiKeyParams,
    body: ApiKeyChange,
    status: 200,
    reply: ApiKey,
    errors: ['not_found', 'conflict', ...BODY_ERRORS],
  },
  rotateApiKey: {
    ...write,
    method: 'POST',
    access: 'admin',
    path: '/environments/{environmentId}/keys/{keyId}/rotate',
    summary:
      'Create a key that replaces an API key; the old one stays valid for a time. The reply shows the new key once',
    tag: 'API keys',
    params: ApiKeyParams,
    headers: CreationHeaders,
    body: ApiKeyRotation,
    status: 201,
    reply: CreatedApiKey,
    shownOnce: 'key',
    errors: ['not_found', 'conflict', ...BODY_ERRORS],
  },
  revokeApiKey: {
    method: 'POST',
    access: 'admin',
    path: '/environments/{environmentId}/keys/{keyId}/revoke',
    summary: 'Revoke an API key; all nodes reject it within 5 seconds',
    tag: 'API keys',
    scopes: [],
    params: ApiKeyParams,
    status: 200,
    reply: ApiKey,
    errors: ['not_found'],
  },
  listOperatorRuns: {
    method: 'GET',
    access: 'viewer',
    path: '/environments/{environmentId}/runs',
    summary: 'List and search runs, by agent, session, status and time',
    tag: 'Runs',
    scopes: [],
    params: EnvironmentParams,
    query: OperatorRunsQuery,
    status: 200,
    reply: OperatorRunPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  readOperatorRun: {
    method: 'GET',
    access: 'viewer',
    path: '/environments/{environmentId}/runs/{runId}',
    summary: 'Read one run',
    tag: 'Runs',
    scopes: [],
    params: OperatorRunParams,
    status: 200,
    reply: OperatorRun,
    errors: ['not_found'],
  },
  listEventRows: {
    method: 'GET',
    access: 'viewer',
    path: '/environments/{environmentId}/runs/{runId}/events',
    summary: 'List timeline rows without payloads, by time or live in arrival order; filter by type and label',
    tag: 'Runs',
    scopes: [],
    params: OperatorRunParams,
    query: EventRowsQuery,
    status: 200,
    reply: EventRowPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  listRunProblems: {
    method: 'GET',
    access: 'viewer',
    path: '/environments/{environmentId}/runs/{runId}/problems',
    summary:
      'List the events of a run that a person should look at, by time: errors, blocked calls, calls that needed approval',
    tag: 'Runs',
    scopes: [],
    params: OperatorRunParams,
    query: RunProblemsQuery,
    status: 200,
    reply: RunProblemPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  searchRun: {
    method: 'GET',
    access: 'viewer',
    path: '/environments/{environmentId}/runs/{runId}/search',
    summary: 'Search the labels and payloads of one run, by time, without an index',
    tag: 'Runs',
    scopes: [],
    params: OperatorRunParams,
    query: RunSearchQuery,
    status: 200,
    reply: RunSearchPage,
    // It would hold one of the few places for pages while it waits for its turn.
    replyBytes: 0,
    errors: ['not_found', 'invalid_cursor'],
  },
  readEvent: {
    method: 'GET',
    access: 'viewer',
    path: '/environments/{environmentId}/runs/{runId}/events/{eventId}',
    summary: 'Read one event with its payload',
    tag: 'Runs',
    scopes: [],
    params: OperatorEventParams,
    status: 200,
    reply: OperatorEvent,
    errors: ['not_found'],
  },
  traceEvent: {
    method: 'GET',
    access: 'viewer',
    path: '/environments/{environmentId}/runs/{runId}/events/{eventId}/trace',
    summary: 'Read what happened to one event',
    tag: 'Doctor',
    scopes: [],
    params: OperatorEventParams,
    status: 200,
    reply: EventTrace,
    errors: ['not_found'],
  },
  readUsage: {
    method: 'GET',
    access: 'viewer',
    path: '/environments/{environmentId}/usage',
    summary: 'Hourly usage by agent and model',
    tag: 'Runs',
    scopes: [],
    params: EnvironmentParams,
    query: UsageQuery,
    status: 200,
    reply: UsagePage,
    errors: ['not_found'],
  },
  readUsagePoints: {
    method: 'GET',
    access: 'viewer',
    path: '/environments/{environmentId}/usage/points',
    summary: 'Usage over time by agent, model or prompt version: runs by outcome, tokens, cost and latency',
    tag: 'Runs',
    scopes: [],
    params: EnvironmentParams,
    query: UsagePointsQuery,
    status: 200,
    reply: UsagePointPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  readCompleteness: {
    method: 'GET',
    access: 'viewer',
    path: '/environments/{environmentId}/completeness',
    summary: 'Events that did not arrive, by client or agent, with the reasons: the greatest loss first',
    tag: 'Runs',
    scopes: [],
    params: EnvironmentParams,
    query: CompletenessQuery,
    status: 200,
    reply: CompletenessPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  createBackup: {
    method: 'POST',
    access: 'installation',
    path: '/backups',
    summary: 'Take a consistent backup of the embedded store and download it',
    tag: 'Operation',
    scopes: [],
    status: 200,
    reply: Type.Unsafe<Uint8Array>({ type: 'string', format: 'binary' }),
    replyType: 'application/vnd.sqlite3',
    errors: ['conflict', 'storage_full'],
  },
  readDoctor: {
    method: 'GET',
    access: 'installation',
    path: '/doctor',
    summary: 'Check the installation',
    tag: 'Doctor',
    scopes: [],
    status: 200,
    reply: DoctorReport,
    // Small, and all who ask at the same time share it.
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
  ...issueRoutes,
  ...promptRoutes,
  ...policyRoutes,
  ...deploymentRoutes,
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
} as const satisfies Record<string, OperatorRoute>
