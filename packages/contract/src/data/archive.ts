import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/route.ts'
import { Environment, EnvironmentParams, NewName, Workspace, WorkspaceParams } from '../tenants/workspace.ts'
import { Policy, PolicyParams } from '../policies/policy.ts'
import { Prompt, PromptParams } from '../policies/prompt.ts'

const act = { method: 'POST', scopes: [], status: 200, errors: ['not_found', 'conflict'] } as const
const rename = { ...act, bodyBytes: LIMITS.operatorBodyBytes, body: NewName } as const

const workspace = { tag: 'Tenants', access: 'owner', params: WorkspaceParams, reply: Workspace } as const
const environment = { tag: 'Tenants', access: 'admin', params: EnvironmentParams, reply: Environment } as const
const prompt = { tag: 'Prompts', access: 'admin', params: PromptParams, reply: Prompt } as const
const policy = { tag: 'Policies', access: 'admin', params: PolicyParams, reply: Policy } as const

const WORKSPACE = '/workspaces/{workspaceId}'
const ENVIRONMENT = '/environments/{environmentId}'
const PROMPT = `${WORKSPACE}/prompts/{promptId}` as const
const POLICY = `${WORKSPACE}/policies/{policyId}` as const

/** Routes for renaming and archiving: archived items keep their data and names, and can be restored. */
export const archiveRoutes = {
  renameWorkspace: {
    ...rename,
    ...workspace,
    path: `${WORKSPACE}/rename`,
    audit: { action: 'workspace.rename', target: 'workspace' },
    access: 'installation',
    summary: 'Rename a workspace; names are unique in the installation',
  },
  archiveWorkspace: {
    ...act,
    ...workspace,
    path: `${WORKSPACE}/archive`,
    audit: { action: 'workspace.archive', target: 'workspace' },
    summary: 'Archive a workspace; the API keys of its environments are refused',
  },
  restoreWorkspace: {
    ...act,
    ...workspace,
    path: `${WORKSPACE}/restore`,
    audit: { action: 'workspace.restore', target: 'workspace' },
    summary: 'Restore an archived workspace; its API keys work again',
  },
  renameEnvironment: {
    ...rename,
    ...environment,
    path: `${ENVIRONMENT}/rename`,
    audit: { action: 'environment.rename', target: 'environment' },
    summary: 'Rename an environment',
  },
  archiveEnvironment: {
    ...act,
    ...environment,
    path: `${ENVIRONMENT}/archive`,
    audit: { action: 'environment.archive', target: 'environment' },
    summary: 'Archive an environment; its API keys are refused',
  },
  restoreEnvironment: {
    ...act,
    ...environment,
    path: `${ENVIRONMENT}/restore`,
    audit: { action: 'environment.restore', target: 'environment' },
    summary: 'Restore an archived environment; its API keys work again, and it is not deleted',
  },
  deleteEnvironment: {
    ...act,
    ...environment,
    access: 'owner',
    path: `${ENVIRONMENT}/delete`,
    audit: { action: 'environment.delete', target: 'environment' },
    summary: `Delete an archived environment with all its data, ${LIMITS.environmentDeletionDays} days from now; restoring it cancels this`,
  },
  renamePrompt: {
    ...rename,
    ...prompt,
    path: `${PROMPT}/rename`,
    audit: { action: 'prompt.rename', target: 'prompt' },
    summary: 'Rename a prompt that is deployed nowhere; clients find prompts by name',
  },
  archivePrompt: {
    ...act,
    ...prompt,
    path: `${PROMPT}/archive`,
    audit: { action: 'prompt.archive', target: 'prompt' },
    summary: 'Archive a prompt that is deployed nowhere',
  },
  restorePrompt: {
    ...act,
    ...prompt,
    path: `${PROMPT}/restore`,
    audit: { action: 'prompt.restore', target: 'prompt' },
    summary: 'Restore an archived prompt',
  },
  archivePolicy: {
    ...act,
    ...policy,
    path: `${POLICY}/archive`,
    audit: { action: 'policy.archive', target: 'policy' },
    summary: 'Archive a policy that is deployed nowhere',
  },
  restorePolicy: {
    ...act,
    ...policy,
    path: `${POLICY}/restore`,
    audit: { action: 'policy.restore', target: 'policy' },
    summary: 'Restore an archived policy',
  },
} as const satisfies Record<string, OperatorRoute>
