import Type, { type Static } from 'typebox'
import { id, nextCursor, nullableText, nullableTime, time, uuid } from '../fields.ts'
import { LIMITS } from '../limits.ts'
import { ROLES, type Role } from './access.ts'

const role = Type.Enum([...ROLES], { description: 'What they may do; each role includes those before it' })

/** An address as people give it; compared and shown in lower case. */
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
      description: 'Their role in this workspace, or in every workspace; null: none in every workspace',
    }),
    twoFactor: Type.Boolean({ description: 'Whether they need a second factor to sign in' }),
    createdAt: time('When their account was made'),
    lastSignInAt: nullableTime('When they signed in last, as far as that session still exists'),
  },
  { $id: 'Operator', description: 'A person' },
)
export type Operator = Static<typeof Operator>

export const OperatorPage = Type.Object({ items: Type.Array(Operator), nextCursor }, { $id: 'OperatorPage' })
export type OperatorPage = Static<typeof OperatorPage>

const operatorId = uuid('Operator id')
export const OperatorParams = Type.Object({ operatorId })
export const WorkspaceOperatorParams = Type.Object({ workspaceId: uuid('Workspace id'), operatorId })

export const NewRole = Type.Object({ role }, { $id: 'NewRole', examples: [{ role: 'approver' }] })
export type NewRole = Static<typeof NewRole>

/** In the installation, people may be without a role in every workspace. */
export const NewInstallationRole = Type.Object(
  {
    role: Type.Unsafe<Role | null>({ enum: [...ROLES, null], description: 'null takes it away' }),
  },
  { $id: 'NewInstallationRole', examples: [{ role: 'viewer' }] },
)
export type NewInstallationRole = Static<typeof NewInstallationRole>

const invitationFields = {
  id: Type.String({ description: 'Public part of the link' }),
  workspaceId: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    format: 'uuid',
    description: 'Where the role will hold; null: in every workspace',
  }),
  email: Type.String(),
  role,
  invitedBy: Type.String(),
  createdAt: time('When it was made'),
  expiresAt: time('From then on the link is refused'),
}

export const Invitation = Type.Object(invitationFields, {
  $id: 'Invitation',
  description: 'An invitation that nobody has accepted yet',
})
export type Invitation = Static<typeof Invitation>

export const CreatedInvitation = Type.Object(
  {
    ...invitationFields,
    link: Type.String({ description: 'For the invited person alone. It is shown this once and cannot be read again' }),
  },
  { $id: 'CreatedInvitation', description: 'A new invitation' },
)
export type CreatedInvitation = Static<typeof CreatedInvitation>

export const NewInvitation = Type.Object(
  { email, role },
  { $id: 'NewInvitation', examples: [{ email: 'ada@example.com', role: 'approver' }] },
)
export type NewInvitation = Static<typeof NewInvitation>

export const InvitationPage = Type.Object({ items: Type.Array(Invitation), nextCursor }, { $id: 'InvitationPage' })
export type InvitationPage = Static<typeof InvitationPage>

const invitationId = Type.String({ description: 'Public part of the link' })
export const InvitationParams = Type.Object({ invitationId })
export const WorkspaceInvitationParams = Type.Object({ workspaceId: uuid('Workspace id'), invitationId })

export const password = Type.String({
  minLength: LIMITS.passwordCharsMin,
  maxLength: LIMITS.passwordCharsMax,
  description: 'Password',
})

export const Acceptance = Type.Object(
  {
    token: id(LIMITS.credentialChars, 'The part of the link after #'),
    name: Type.Optional(id(LIMITS.nameChars, 'How others see the person; part of the address when absent')),
    password: Type.String({
      minLength: 1,
      maxLength: LIMITS.passwordCharsMax,
      description: 'A new one; or the present one of somebody who has an account already',
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

/** The part of the link alone: who has it may see what it is for. */
export const InvitationLink = Type.Object(
  { token: id(LIMITS.credentialChars, 'The part of the link after #') },
  { $id: 'InvitationLink', examples: [{ token: 'tacho-invite_0123456789abcdef_secret' }] },
)
export type InvitationLink = Static<typeof InvitationLink>

export const OpenedInvitation = Type.Object(
  {
    email: Type.String({ description: 'Who is invited' }),
    role,
    workspace: nullableText('Name of the workspace; null: every workspace'),
    invitedBy: Type.String({ description: 'Who invited them' }),
    expiresAt: time('When the link stops working'),
    account: Type.Enum(['none', 'password', 'identity-provider'], {
      description: 'Whether that address has an account already, and how it signs in',
    }),
  },
  { $id: 'OpenedInvitation', description: 'What an invitation is for, shown before it is accepted' },
)
export type OpenedInvitation = Static<typeof OpenedInvitation>

export const Accepted = Type.Object({ email: Type.String(), role, created: Type.Boolean() }, { $id: 'Accepted' })
export type Accepted = Static<typeof Accepted>
