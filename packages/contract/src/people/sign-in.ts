import Type, { type Static } from 'typebox'
import { id, nullableText, nullableTime, time, uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { email, password } from './operator.ts'

export const SignInMethods = Type.Object(
  {
    password: Type.Boolean({ description: 'E-mail and password' }),
    oidc: Type.Unsafe<{ name: string } | null>({
      anyOf: [Type.Object({ name: Type.String() }), { type: 'null' }],
      description: 'An identity provider; null: none is configured',
    }),
  },
  { $id: 'SignInMethods', description: 'How people can sign in here' },
)
export type SignInMethods = Static<typeof SignInMethods>

/** The password of an attempt. Only the length is limited, because older rules may have differed. */
const presented = id(LIMITS.passwordCharsMax, 'Password')

export const SignIn = Type.Object(
  { email, password: presented },
  { $id: 'SignIn', examples: [{ email: 'ada@example.com', password: 'correct horse battery staple' }] },
)
export type SignIn = Static<typeof SignIn>

export const SignInResult = Type.Object(
  {
    status: Type.Enum(['signed_in', 'second_factor_needed'], {
      description: 'Whether the session has started or a code is needed first',
    }),
  },
  { $id: 'SignInResult', description: 'Result of a sign-in attempt; the cookies hold the rest' },
)
export type SignInResult = Static<typeof SignInResult>

export const Code = Type.Object(
  { code: id(LIMITS.codeChars, 'Code from the authenticator, or a recovery code') },
  { $id: 'Code', examples: [{ code: '123456' }] },
)
export type Code = Static<typeof Code>

export const Done = Type.Object({ done: Type.Literal(true) }, { $id: 'Done' })
export type Done = Static<typeof Done>

export const OidcStart = Type.Object(
  { url: Type.String({ description: 'Address to send the browser to' }) },
  { $id: 'OidcStart' },
)
export type OidcStart = Static<typeof OidcStart>

export const Password = Type.Object(
  { password: presented },
  { $id: 'Password', examples: [{ password: 'correct horse battery staple' }] },
)
export type Password = Static<typeof Password>

export const NewPassword = Type.Object(
  { password: presented, newPassword: password },
  {
    $id: 'NewPassword',
    examples: [{ password: 'correct horse battery staple', newPassword: 'another horse battery staple' }],
  },
)
export type NewPassword = Static<typeof NewPassword>

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

export const SessionList = Type.Object({ items: Type.Array(Session) }, { $id: 'SessionList' })
export type SessionList = Static<typeof SessionList>

export const SessionParams = Type.Object({ sessionId: uuid('Session id') })

export const OidcAnswer = Type.Object(
  {
    code: Type.Optional(Type.String()),
    state: Type.Optional(Type.String()),
    error: Type.Optional(Type.String()),
    iss: Type.Optional(Type.String()),
  },
  { $id: 'OidcAnswer' },
)
