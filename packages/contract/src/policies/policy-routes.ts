import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/access.ts'
import { CreationHeaders } from '../web/idempotency.ts'
import {
  NewPolicy,
  NewPolicyVersion,
  Policy,
  PolicyPage,
  PolicyParams,
  PolicyVersion,
  PolicyVersionPage,
  PolicyVersionParams,
  SavedPolicyVersion,
} from './policy.ts'
import { DiffQuery, VersionDiff } from './version.ts'
import { ArchivableQuery, ListQuery, WorkspaceParams } from '../tenants/workspace.ts'

const read = { tag: 'Policies', scopes: [], access: 'viewer', method: 'GET', status: 200 } as const
const write = {
  tag: 'Policies',
  scopes: [],
  access: 'admin',
  method: 'POST',
  headers: CreationHeaders,
  status: 201,
  bodyBytes: LIMITS.operatorBodyBytes,
} as const

export const policyRoutes = {
  listPolicies: {
    ...read,
    path: '/workspaces/{workspaceId}/policies',
    summary: 'List policies by id',
    params: WorkspaceParams,
    query: ArchivableQuery,
    reply: PolicyPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  createPolicy: {
    ...write,
    path: '/workspaces/{workspaceId}/policies',
    audit: { action: 'policy.create', target: 'policy' },
    summary: 'Create a policy with its first version; the condition is checked',
    params: WorkspaceParams,
    body: NewPolicy,
    reply: Policy,
    errors: ['not_found', 'conflict'],
  },
  readPolicy: {
    ...read,
    path: '/workspaces/{workspaceId}/policies/{policyId}',
    summary: 'Read a policy and its newest version',
    params: PolicyParams,
    reply: Policy,
    errors: ['not_found'],
  },
  listPolicyVersions: {
    ...read,
    path: '/workspaces/{workspaceId}/policies/{policyId}/versions',
    summary: 'List the versions of a policy, newest first',
    params: PolicyParams,
    query: ListQuery,
    reply: PolicyVersionPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  createPolicyVersion: {
    ...write,
    path: '/workspaces/{workspaceId}/policies/{policyId}/versions',
    audit: { action: 'policy.write_version', target: 'policy' },
    summary: 'Create a new version of a policy; the condition is checked. Deploy it to put it into effect',
    params: PolicyParams,
    body: NewPolicyVersion,
    reply: SavedPolicyVersion,
    errors: ['not_found', 'conflict'],
  },
  readPolicyVersion: {
    ...read,
    path: '/workspaces/{workspaceId}/policies/{policyId}/versions/{version}',
    summary: 'Read a version of a policy',
    params: PolicyVersionParams,
    reply: PolicyVersion,
    errors: ['not_found'],
  },
  diffPolicyVersions: {
    ...read,
    path: '/workspaces/{workspaceId}/policies/{policyId}/diff',
    summary: 'Compare two versions of a policy',
    params: PolicyParams,
    query: DiffQuery,
    reply: VersionDiff,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
