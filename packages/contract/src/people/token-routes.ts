import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/access.ts'
import { CreationHeaders } from '../web/idempotency.ts'
import {
  CreatedOperatorToken,
  NewOperatorToken,
  OperatorToken,
  OperatorTokenPage,
  TokenParams,
  WorkspaceTokenParams,
} from './token.ts'
import { ListQuery, WorkspaceParams } from '../tenants/workspace.ts'

const common = { tag: 'Operator tokens', scopes: [] } as const
const list = { ...common, method: 'GET', query: ListQuery, status: 200, reply: OperatorTokenPage } as const
const create = {
  ...common,
  method: 'POST',
  headers: CreationHeaders,
  body: NewOperatorToken,
  bodyBytes: LIMITS.operatorBodyBytes,
  status: 201,
  reply: CreatedOperatorToken,
  shownOnce: 'token',
} as const
const revoke = { ...common, method: 'POST', status: 200, reply: OperatorToken } as const

/** Tokens that authenticate scripts: tokens of one workspace, and tokens of the whole installation. */
export const tokenRoutes = {
  listTokens: {
    ...list,
    access: 'owner',
    path: '/workspaces/{workspaceId}/tokens',
    summary: 'List the operator tokens of a workspace',
    params: WorkspaceParams,
    errors: ['not_found', 'invalid_cursor'],
  },
  createToken: {
    ...create,
    access: 'owner',
    path: '/workspaces/{workspaceId}/tokens',
    audit: { action: 'operator_token.create', target: 'operator_token' },
    summary: 'Create an operator token for a workspace; the reply shows it once',
    params: WorkspaceParams,
    errors: ['not_found', 'conflict'],
  },
  revokeToken: {
    ...revoke,
    access: 'owner',
    path: '/workspaces/{workspaceId}/tokens/{tokenId}/revoke',
    audit: { action: 'operator_token.revoke', target: 'operator_token' },
    summary: 'Revoke an operator token; all nodes reject it within 5 seconds',
    params: WorkspaceTokenParams,
    errors: ['not_found'],
  },
  listInstallationTokens: {
    ...list,
    access: 'installation',
    path: '/tokens',
    summary: 'List the operator tokens for every workspace',
    errors: ['invalid_cursor'],
  },
  createInstallationToken: {
    ...create,
    access: 'installation',
    path: '/tokens',
    audit: { action: 'operator_token.create', target: 'operator_token' },
    summary: 'Create an operator token for every workspace; the reply shows it once',
    errors: ['conflict'],
  },
  revokeInstallationToken: {
    ...revoke,
    access: 'installation',
    path: '/tokens/{tokenId}/revoke',
    audit: { action: 'operator_token.revoke', target: 'operator_token' },
    summary: 'Revoke an operator token for every workspace; all nodes reject it within 5 seconds',
    params: TokenParams,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
