import Type, { type Static } from 'typebox'
import { id, nullableText, nullableTime, time, uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { email, password } from './operator.ts'
import type { OperatorRoute } from '../web/route.ts'

const SignInMethods = Type.Object(
  {
    password: Type.Boolean({ description: 'E-mail and password' }),
    oidc: Type.Unsafe<{ name: string } | null>({
      anyOf: [Type.Object({ name: Type.String() }), { type: 'null' }],
      description: 'An identity provider; null: none is configured',
    }),
  },
  { $id: 'SignInMethods', description: 'How people can sign in here' },
)
type SignInMethods = Static<typeof SignInMethods>

/** The password of an attempt. Only the length is limited, because older rules may have differed. */
const presented = id(LIMITS.passwordCharsMax, 'Password')

const SignIn = Type.Object(
  { email, password: presented },
  { $id: 'SignIn', examples: [{ email: 'ada@example.com', password: 'correct horse battery staple' }] },
)
type SignIn = Static<typeof SignIn>

export const SignInResult = Type.Object(
  {
    status: Type.Enum(['signed_in', 'second_factor_needed'], {
      description: 'Whether the session has started or a code is needed first',
    }),
  },
  { $id: 'SignInResult', description: 'Result of a sign-in attempt; the cookies hold the rest' },
)
export type SignInResult = Static<typeof SignInResult>

const Code = Type.Object(
  { code: id(LIMITS.codeChars, 'Code from the authenticator, or a recovery code') },
  { $id: 'Code', examples: [{ code: '123456' }] },
)
type Code = Static<typeof Code>

export const Done = Type.Object({ done: Type.Literal(true) }, { $id: 'Done' })
export type Done = Static<typeof Done>

const OidcStart = Type.Object(
  { url: Type.String({ description: 'Address to send the browser to' }) },
  { $id: 'OidcStart' },
)
type OidcStart = Static<typeof OidcStart>

const Password = Type.Object(
  { password: presented },
  { $id: 'Password', examples: [{ password: 'correct horse battery staple' }] },
)
type Password = Static<typeof Password>

const NewPassword = Type.Object(
  { password: presented, newPassword: password },
  {
    $id: 'NewPassword',
    examples: [{ password: 'correct horse battery staple', newPassword: 'another horse battery staple' }],
  },
)
type NewPassword = Static<typeof NewPassword>

export const SecondFactor = Type.Object(
  {
    uri: Type.String({ description: 'For the authenticator, as otpauth://; usually shown as a QR code' }),
    recoveryCodes: Type.Array(Type.String(), { description: 'Each code signs in once, if the authenticator is lost' }),
  },
  { $id: 'SecondFactor', description: 'A second factor, shown once; it takes effect after its code is confirmed' },
)
export type SecondFactor = Static<typeof SecondFactor>

export const Session = Type.Object(
  {
    id: uuid('Session id'),
    current: Type.Boolean({ description: 'Whether this request uses the session' }),
    createdAt: time('When it started'),
    expiresAt: time('When it expires'),
    lastUsedAt: nullableTime('Last use, accurate to about a minute'),
    address: nullableText('IP address that started it'),
    userAgent: nullableText('Program that started it'),
  },
  { $id: 'Session', description: 'An active session' },
)
export type Session = Static<typeof Session>

const SessionList = Type.Object({ items: Type.Array(Session) }, { $id: 'SessionList' })
type SessionList = Static<typeof SessionList>

const SessionParams = Type.Object({ sessionId: uuid('Session id') })

const OidcAnswer = Type.Object(
  {
    code: Type.Optional(Type.String()),
    state: Type.Optional(Type.String()),
    error: Type.Optional(Type.String()),
    iss: Type.Optional(Type.String()),
  },
  { $id: 'OidcAnswer' },
)

const open = { tag: 'Sign-in', scopes: [], access: 'anyone', status: 200 } as const
const ownRoute = { tag: 'Me', scopes: [], access: 'signed-in', status: 200 } as const
const write = { method: 'POST', bodyBytes: LIMITS.signInBodyBytes } as const

/** Sessions of people, held in cookies. Changes are accepted only from the server's own origin. */
export const signInRoutes = {
  readSignInMethods: {
    ...open,
    method: 'GET',
    path: '/sign-in/methods',
    summary: 'List the available sign-in methods',
    reply: SignInMethods,
    errors: [],
  },
  signIn: {
    ...open,
    ...write,
    path: '/sign-in',
    summary: 'Sign in with e-mail and password',
    body: SignIn,
    reply: SignInResult,
    errors: ['unauthenticated', 'forbidden'],
  },
  signInWithCode: {
    ...open,
    ...write,
    path: '/sign-in/code',
    summary: 'Finish a sign-in with a code from the authenticator',
    body: Code,
    reply: SignInResult,
    errors: ['unauthenticated', 'forbidden'],
  },
  signInWithRecoveryCode: {
    ...open,
    ...write,
    path: '/sign-in/recovery-code',
    summary: 'Finish a sign-in with a recovery code; each code works once',
    body: Code,
    reply: SignInResult,
    errors: ['unauthenticated', 'forbidden'],
  },
  startOidc: {
    ...open,
    method: 'POST',
    path: '/sign-in/oidc',
    summary: 'Start a sign-in at the identity provider',
    reply: OidcStart,
    errors: ['forbidden', 'not_found', 'sign_in_unavailable'],
  },
  finishOidc: {
    ...open,
    method: 'GET',
    path: '/sign-in/callback/oidc',
    openQuery: true,
    summary: 'Receive the browser back from the identity provider and redirect it to the console',
    query: OidcAnswer,
    status: 303,
    reply: Type.String(),
    replyType: 'text/plain',
    errors: ['not_found'],
  },
  signOut: {
    ...ownRoute,
    method: 'POST',
    path: '/sign-out',
    audit: { action: 'operator.sign_out', target: 'session' },
    summary: 'End the session',
    reply: Done,
    errors: ['forbidden'],
  },
  listSessions: {
    ...ownRoute,
    method: 'GET',
    path: '/me/sessions',
    summary: "List the caller's sessions",
    reply: SessionList,
    errors: ['forbidden'],
  },
  endSession: {
    ...ownRoute,
    method: 'POST',
    path: '/me/sessions/{sessionId}/end',
    audit: { action: 'operator.end_session', target: 'session' },
    summary: "End one of the caller's sessions; all nodes reject it within 5 seconds",
    params: SessionParams,
    reply: Done,
    errors: ['forbidden', 'not_found'],
  },
  changePassword: {
    ...ownRoute,
    ...write,
    path: '/me/password',
    audit: { action: 'operator.change_password', target: 'operator' },
    summary: "Change the caller's password; all other sessions end",
    body: NewPassword,
    reply: Done,
    errors: ['forbidden', 'conflict'],
  },
  addSecondFactor: {
    ...ownRoute,
    ...write,
    path: '/me/second-factor',
    summary: 'Create a second factor; it takes effect after confirmation',
    body: Password,
    reply: SecondFactor,
    errors: ['forbidden', 'conflict'],
  },
  confirmSecondFactor: {
    ...ownRoute,
    ...write,
    path: '/me/second-factor/confirm',
    audit: { action: 'operator.confirm_second_factor', target: 'operator' },
    summary: 'Confirm a second factor with its code; sign-in then requires it',
    body: Code,
    reply: Done,
    errors: ['forbidden', 'conflict'],
  },
  removeSecondFactor: {
    ...ownRoute,
    ...write,
    path: '/me/second-factor/remove',
    audit: { action: 'operator.remove_second_factor', target: 'operator' },
    summary: 'Remove the second factor',
    body: Password,
    reply: Done,
    errors: ['forbidden'],
  },
} as const satisfies Record<string, OperatorRoute>
