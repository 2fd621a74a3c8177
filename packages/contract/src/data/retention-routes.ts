import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/access.ts'
import { EnvironmentParams } from '../tenants/environment.ts'
import {
  PinnedRun,
  Retention,
  RetentionChange,
  RetentionPreview,
  RetentionPreviewQuery,
  WorkspaceRetention,
} from './retention.ts'
import { OperatorRunParams } from '../runs/operator-run.ts'
import { WorkspaceParams } from '../tenants/workspace.ts'

const common = { tag: 'Retention', scopes: [], status: 200 } as const
const read = { ...common, method: 'GET', access: 'viewer' } as const
const change = { ...common, method: 'POST', access: 'admin' } as const
const body = { bodyBytes: LIMITS.operatorBodyBytes } as const

const OF_ENVIRONMENT = '/environments/{environmentId}/retention'
const OF_WORKSPACE = '/workspaces/{workspaceId}/retention'
const RUN = '/environments/{environmentId}/runs/{runId}'

export const retentionRoutes = {
  readRetention: {
    ...read,
    path: OF_ENVIRONMENT,
    summary: 'Read how long an environment keeps things, and what was removed',
    params: EnvironmentParams,
    reply: Retention,
    errors: ['not_found'],
  },
  changeRetention: {
    ...change,
    ...body,
    path: `${OF_ENVIRONMENT}/change`,
    audit: { action: 'retention.change', target: 'environment' },
    summary: 'Give an environment settings of its own; older things are removed in the background',
    params: EnvironmentParams,
    body: RetentionChange,
    reply: Retention,
    errors: ['not_found'],
  },
  inheritRetention: {
    ...change,
    path: `${OF_ENVIRONMENT}/inherit`,
    audit: { action: 'retention.inherit', target: 'environment' },
    summary: 'Remove the settings of an environment; it follows its workspace again',
    params: EnvironmentParams,
    reply: Retention,
    errors: ['not_found'],
  },
  previewRetention: {
    ...read,
    path: `${OF_ENVIRONMENT}/preview`,
    summary: 'Count what given settings would remove now; nothing is removed',
    params: EnvironmentParams,
    query: RetentionPreviewQuery,
    reply: RetentionPreview,
    errors: ['not_found'],
  },
  readWorkspaceRetention: {
    ...read,
    path: OF_WORKSPACE,
    summary: 'Read the settings of a workspace, for its environments that have none',
    params: WorkspaceParams,
    reply: WorkspaceRetention,
    errors: ['not_found'],
  },
  changeWorkspaceRetention: {
    ...change,
    ...body,
    path: `${OF_WORKSPACE}/change`,
    audit: { action: 'retention.change', target: 'workspace' },
    summary: 'Change the settings of a workspace, for its environments that have none',
    params: WorkspaceParams,
    body: RetentionChange,
    reply: WorkspaceRetention,
    errors: ['not_found'],
  },
  pinRun: {
    ...change,
    access: 'approver',
    path: `${RUN}/pin`,
    audit: { action: 'run.pin', target: 'run' },
    summary: 'Keep a run whatever the retention settings are',
    params: OperatorRunParams,
    reply: PinnedRun,
    errors: ['not_found'],
  },
  unpinRun: {
    ...change,
    access: 'approver',
    path: `${RUN}/unpin`,
    audit: { action: 'run.unpin', target: 'run' },
    summary: 'Let retention remove a run again',
    params: OperatorRunParams,
    reply: PinnedRun,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
