import Type, { type Static } from 'typebox'
import { id, nextCursor, nullableText, nullableTime, time, uuid, CreationHeaders, damaged } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import type { Role, OperatorRoute } from '../web/route.ts'
import { ROLES } from '../engine/words.ts'
import { ListQuery, WorkspaceParams } from '../tenants/workspace.ts'

const role = Type.Enum([...ROLES], { description: 'What the person can do; each role includes the roles before it' })

/** An e-mail address; compared and shown in lower case. */
export const email = Type.String({
  maxLength: LIMITS.emailChars,
  pattern: '^[^\\s@\\u0000-\\u001f]+@[^\\s@\\u0000-\\u001f]+$',
  description: 'E-mail address',
})

export const Operator = Type.Object(
  {
    id: uuid('Operator id'),
    name: Type.String(),
    email: Type.String(),
    role: Type.Unsafe<Role | null>({
      enum: [...ROLES, null],
      description: "The person's role in this workspace or in every workspace; null: none in every workspace",
    }),
    fromGroups: Type.Boolean({
      description: 'Whether groups of the identity provider gave the role, and take it away',
    }),
    twoFactor: Type.Boolean({ description: 'Whether the person needs a second factor to sign in' }),
    deactivated: Type.Boolean({
      description: 'Whether a directory has deactivated the account, which ends all access',
    }),
    createdAt: time('When the account was created'),
    lastSignInAt: nullableTime('When the person last signed in, if that session still exists'),
    damaged: damaged('The stored role does not match its checksum: the person can do nothing until it is given again'),
  },
  { $id: 'Operator', description: 'A person' },
)
export type Operator = Static<typeof Operator>

const OperatorPage = Type.Object({ items: Type.Array(Operator), nextCursor }, { $id: 'OperatorPage' })
type OperatorPage = Static<typeof OperatorPage>

const operatorId = uuid('Operator id')
const OperatorParams = Type.Object({ operatorId })
const WorkspaceOperatorParams = Type.Object({ workspaceId: uuid('Workspace id'), operatorId })

const NewRole = Type.Object({ role }, { $id: 'NewRole', examples: [{ role: 'approver' }] })
type NewRole = Static<typeof NewRole>

/** The role in every workspace; null: the person has no such role. */
const NewInstallationRole = Type.Object(
  {
    role: Type.Unsafe<Role | null>({ enum: [...ROLES, null], description: 'null removes the role' }),
  },
  { $id: 'NewInstallationRole', examples: [{ role: 'viewer' }] },
)
type NewInstallationRole = Static<typeof NewInstallationRole>

const invitationFields = {
  id: Type.String({ description: 'Public part of the link' }),
  workspaceId: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    format: 'uuid',
    description: 'Workspace of the role; null: every workspace',
  }),
  email: Type.String(),
  role,
  invitedBy: Type.String(),
  createdAt: time('When it was created'),
  expiresAt: time('When the link expires'),
}

export const Invitation = Type.Object(invitationFields, {
  $id: 'Invitation',
  description: 'An invitation that has not been accepted',
})
export type Invitation = Static<typeof Invitation>

export const CreatedInvitation = Type.Object(
  {
    ...invitationFields,
    link: Type.String({ description: 'Give it only to the invited person. It is shown once and cannot be read again' }),
  },
  { $id: 'CreatedInvitation', description: 'A new invitation' },
)
export type CreatedInvitation = Static<typeof CreatedInvitation>

export const NewInvitation = Type.Object(
  { email, role },
  { $id: 'NewInvitation', examples: [{ email: 'ada@example.com', role: 'approver' }] },
)
export type NewInvitation = Static<typeof NewInvitation>

const InvitationPage = Type.Object({ items: Type.Array(Invitation), nextCursor }, { $id: 'InvitationPage' })
type InvitationPage = Static<typeof InvitationPage>

const invitationId = Type.String({ description: 'Public part of the link' })
const InvitationParams = Type.Object({ invitationId })
const WorkspaceInvitationParams = Type.Object({ workspaceId: uuid('Workspace id'), invitationId })

export const password = Type.String({
  minLength: LIMITS.passwordCharsMin,
  maxLength: LIMITS.passwordCharsMax,
  description: 'Password',
})

export const Acceptance = Type.Object(
  {
    token: id(LIMITS.credentialChars, 'The part of the link after #'),
    name: Type.Optional(id(LIMITS.nameChars, 'Name to show to others; by default, part of the e-mail address')),
    email: Type.Optional(
      id(LIMITS.emailChars, 'E-mail address of the first person of a store; other invitations name the address'),
    ),
    password: Type.String({
      minLength: 1,
      maxLength: LIMITS.passwordCharsMax,
      description: 'A new password, or the existing password if the person already has an account',
    }),
  },
  {
    $id: 'Acceptance',
    examples: [
      { token: 'tacho-invite_0123456789abcdef_secret', name: 'Ada', password: 'correct horse battery staple' },
    ],
  },
)
export type Acceptance = Static<typeof Acceptance>

/** A person with the link's token may see what the invitation offers. */
const InvitationLink = Type.Object(
  { token: id(LIMITS.credentialChars, 'The part of the link after #') },
  { $id: 'InvitationLink', examples: [{ token: 'tacho-invite_0123456789abcdef_secret' }] },
)
type InvitationLink = Static<typeof InvitationLink>

export const OpenedInvitation = Type.Object(
  {
    email: Type.String({ description: 'E-mail address of the invited person; empty: the first person names it' }),
    role,
    workspace: nullableText('Name of the workspace; null: every workspace'),
    invitedBy: Type.String({ description: 'Who sent the invitation' }),
    expiresAt: time('When the link expires'),
    account: Type.Enum(['none', 'password', 'identity-provider', 'unknown'], {
      description:
        'Whether the address already has an account, and how that account signs in. `unknown`: it must have one; not told, because somebody of one workspace invites',
    }),
  },
  { $id: 'OpenedInvitation', description: 'What an invitation offers, shown before it is accepted' },
)
export type OpenedInvitation = Static<typeof OpenedInvitation>

const Accepted = Type.Object({ email: Type.String(), role, created: Type.Boolean() }, { $id: 'Accepted' })
type Accepted = Static<typeof Accepted>

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
