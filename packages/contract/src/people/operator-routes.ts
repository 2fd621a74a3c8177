import Type from 'typebox'
import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/access.ts'
import { CreationHeaders } from '../web/idempotency.ts'
import {
  Acceptance,
  Accepted,
  CreatedInvitation,
  Invitation,
  InvitationLink,
  InvitationPage,
  InvitationParams,
  NewInstallationRole,
  NewInvitation,
  NewRole,
  OpenedInvitation,
  Operator,
  OperatorPage,
  OperatorParams,
  WorkspaceInvitationParams,
  WorkspaceOperatorParams,
} from './operator.ts'
import { ListQuery, WorkspaceParams } from '../tenants/workspace.ts'

const common = { tag: 'Operators', scopes: [] } as const
const inWorkspace = { ...common, access: 'owner' } as const
const everywhere = { ...common, access: 'installation' } as const
const act = { method: 'POST', status: 200 } as const
const write = { ...act, bodyBytes: LIMITS.operatorBodyBytes } as const
const start = { ...common, ...write, access: 'anyone', bodyBytes: LIMITS.signInBodyBytes } as const
const listPeople = { method: 'GET', query: ListQuery, status: 200, reply: OperatorPage } as const
const listInvited = { method: 'GET', query: ListQuery, status: 200, reply: InvitationPage } as const
const invite = {
  ...write,
  headers: CreationHeaders,
  body: NewInvitation,
  status: 201,
  reply: CreatedInvitation,
  shownOnce: 'link',
} as const
const removed = Type.Object({ id: Type.String() }, { $id: 'Removed' })

/** People, their roles and invitations. */
export const operatorRoutes = {
  listOperators: {
    ...inWorkspace,
    ...listPeople,
    access: 'viewer',
    path: '/workspaces/{workspaceId}/operators',
    summary: 'List the people of a workspace',
    params: WorkspaceParams,
    errors: ['not_found', 'invalid_cursor'],
  },
  changeRole: {
    ...inWorkspace,
    ...write,
    path: '/workspaces/{workspaceId}/operators/{operatorId}/role',
    audit: { action: 'operator.change_role', target: 'operator' },
    summary: "Change a person's role; it takes effect within 5 seconds",
    params: WorkspaceOperatorParams,
    body: NewRole,
    reply: Operator,
    errors: ['not_found', 'conflict'],
  },
  removeOperator: {
    ...inWorkspace,
    ...act,
    path: '/workspaces/{workspaceId}/operators/{operatorId}/remove',
    audit: { action: 'operator.remove', target: 'operator' },
    summary: 'Remove a person from a workspace; it takes effect within 5 seconds',
    params: WorkspaceOperatorParams,
    reply: removed,
    errors: ['not_found', 'conflict'],
  },
  listInvitations: {
    ...inWorkspace,
    ...listInvited,
    path: '/workspaces/{workspaceId}/invitations',
    summary: 'List the pending invitations',
    params: WorkspaceParams,
    errors: ['not_found', 'invalid_cursor'],
  },
  invite: {
    ...inWorkspace,
    ...invite,
    path: '/workspaces/{workspaceId}/invitations',
    audit: { action: 'operator.invite', target: 'invitation' },
    summary: 'Invite a person; the reply shows the one-time link',
    params: WorkspaceParams,
    errors: ['not_found', 'conflict'],
  },
  revokeInvitation: {
    ...inWorkspace,
    ...act,
    path: '/workspaces/{workspaceId}/invitations/{invitationId}/revoke',
    audit: { action: 'operator.revoke_invitation', target: 'invitation' },
    summary: 'Revoke an invitation',
    params: WorkspaceInvitationParams,
    reply: Invitation,
    errors: ['not_found'],
  },
  listInstallationOperators: {
    ...everywhere,
    ...listPeople,
    path: '/operators',
    summary: 'List all accounts',
    errors: ['invalid_cursor'],
  },
  changeInstallationRole: {
    ...everywhere,
    ...write,
    path: '/operators/{operatorId}/role',
    audit: { action: 'operator.change_role', target: 'operator' },
    summary: "Set or remove a person's role in every workspace",
    params: OperatorParams,
    body: NewInstallationRole,
    reply: Operator,
    errors: ['not_found', 'conflict'],
  },
  deleteOperator: {
    ...everywhere,
    ...act,
    path: '/operators/{operatorId}/remove',
    audit: { action: 'operator.delete', target: 'operator' },
    summary: 'Delete an account with its roles, sign-in methods and sessions',
    params: OperatorParams,
    reply: removed,
    errors: ['not_found', 'conflict'],
  },
  listInstallationInvitations: {
    ...everywhere,
    ...listInvited,
    path: '/invitations',
    summary: 'List the pending invitations to every workspace',
    errors: ['invalid_cursor'],
  },
  inviteEverywhere: {
    ...everywhere,
    ...invite,
    path: '/invitations',
    audit: { action: 'operator.invite', target: 'invitation' },
    summary: 'Invite a person to every workspace; an owner manages the installation',
    errors: ['conflict'],
  },
  revokeInstallationInvitation: {
    ...everywhere,
    ...act,
    path: '/invitations/{invitationId}/revoke',
    audit: { action: 'operator.revoke_invitation', target: 'invitation' },
    summary: 'Revoke an invitation',
    params: InvitationParams,
    reply: Invitation,
    errors: ['not_found'],
  },
  openInvitation: {
    ...start,
    path: '/invitations/open',
    summary: 'Read what an invitation link offers, without accepting it',
    body: InvitationLink,
    reply: OpenedInvitation,
    errors: ['not_found', 'rate_limited'],
  },
  acceptInvitation: {
    ...start,
    path: '/invitations/accept',
    summary: 'Accept an invitation with the token from its link and a password',
    body: Acceptance,
    reply: Accepted,
    errors: ['not_found', 'forbidden', 'conflict'],
  },
} as const satisfies Record<string, OperatorRoute>
