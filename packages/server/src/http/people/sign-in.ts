/**
 *   anonymous --password--> signed in
 *   anonymous --password, account has a second factor--> challenge --code--> signed in
 *   anonymous --identity provider--> signed in
 *
 * A challenge is a cookie that is valid for ten minutes and five codes. Ten wrong codes in a row lock an account for 15
 * minutes, across all challenges and nodes.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { SignInResult } from '@tacho/contract/people/sign-in.ts'
import { sessionCredential } from '../../domain/people/credential.ts'
import { lowerCase } from '../../domain/people/identity.ts'
import type { SessionRow } from '../../storage/people/operators.ts'
import { refuse, type Refusal } from '../web/reply-error.ts'
import {
  COOKIE_PREFIX,
  cookieHeader,
  SECOND_FACTOR_COOKIE,
  SESSION_COOKIE,
  sessionTokenIn,
  setCookies,
} from './sign-in-records.ts'
import type { Attempts } from './attempts.ts'
import { PROVIDER_ID } from './identity-provider.ts'
import { personalEntry } from './audit.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'
import { ADDRESS_HEADER } from './sign-in-library.ts'

const WRONG = refuse('unauthenticated', 'The e-mail address or password is wrong')
const NEEDS_CODE: SignInResult = { status: 'second_factor_needed' }
const NO_PROVIDER = refuse('not_found', 'No identity provider is configured')

export function signInRoutes(deps: OperatorDeps, attempts: Attempts): void {
  const { serve, storage, signIn, config, now, refreshCredentials } = deps
  const home = config.publicUrl === null ? '/' : `${new URL(config.publicUrl).pathname.replace(/\/$/, '')}/`

  serve('readSignInMethods', () => ({
    password: true,
    oidc: signIn.hasOidc ? { name: config.oidcName } : null,
  }))

  serve('signIn', async ({ request, reply, body: { email, password } }) => {
    const account = lowerCase(email)
    attempts.from(request.ip)
    attempts.on(account)
    const library = await signIn.passwords()
    const body = { email: account, password }
    const headers = libraryHeaders(request, '')
    const response = await attempts.inTurn(request, () => library.api.signInEmail({ body, headers, asResponse: true }))
    const answer = await readAnswer(response)
    if (!answer.ok) {
      if (!isWrongPassword(answer)) throw new Error(`The sign-in library answered ${answer.code}`)
      return refusedPassword(request, account)
    }
    setCookies(request, reply, answer.setCookies, config.publicUrl)
    // The counter of the account is reset only after the second factor.
    if (answer.body['twoFactorRedirect'] === true) {
      attempts.passed(request.ip)
      return NEEDS_CODE
    }
    return (await signedIn(request, answer, 'password')) ?? WRONG
  })

  serve('signInWithCode', async ({ request, reply, body }) => {
    const library = await signIn.passwords()
    const code = body.code.replaceAll(' ', '')
    const ask = (headers: Headers) => library.api.verifyTOTP({ body: { code }, headers, asResponse: true })
    return answerChallenge(request, reply, 'totp', ask, code)
  })

  serve('signInWithRecoveryCode', async ({ request, reply, body }) => {
    const library = await signIn.passwords()
    return answerChallenge(request, reply, 'recovery_code', (headers) =>
      library.api.verifyBackupCode({ body: { code: body.code.trim() }, headers, asResponse: true }),
    )
  })

  serve('startOidc', async ({ request, reply }) => {
    if (!signIn.hasOidc) return NO_PROVIDER
    attempts.begin(request.ip)
    const library = await signIn.oidc()
    if (library === null) return refuse('sign_in_unavailable')
    const response = await library.api.signInSocial({
      body: { provider: PROVIDER_ID, callbackURL: '/', disableRedirect: true },
      headers: libraryHeaders(request, ''),
      asResponse: true,
    })
    const answer = await readAnswer(response)
    if (!answer.ok) throw new Error(`The sign-in library answered ${answer.code}`)
    setCookies(request, reply, answer.setCookies, config.publicUrl)
    return { url: String(answer.body['url']) }
  })

  serve('finishOidc', async ({ request, reply, query }) => {
    if (!signIn.hasOidc) return NO_PROVIDER
    const ending = await finishOidc(request, reply, query).catch((err: unknown) => {
      request.log.error({ err }, 'a sign-in at the identity provider could not be finished')
      return 'unavailable'
    })
    // Always our own console, even if the provider's answer names another address.
    return reply
      .code(303)
      .header('location', ending === 'signed-in' ? home : `${home}?sign-in=${ending}`)
      .type('text/plain')
      .send('')
  })

  /** A person's browser shows the answer, so a refusal redirects to a page that says what to do. */
  async function finishOidc(
    request: FastifyRequest,
    reply: FastifyReply,
    query: Record<string, string | undefined>,
  ): Promise<'signed-in' | 'refused' | 'busy' | 'unavailable'> {
    if (!attempts.mayTry(request.ip)) return 'busy'
    const library = await signIn.oidc()
    if (library === null) return 'unavailable'
    attempts.from(request.ip)
    const headers = libraryHeaders(request, challengeCookies(request))
    const callback = { params: { id: PROVIDER_ID }, query, method: 'GET', headers, asResponse: true } as const
    const answer = await readAnswer(await signIn.within(request, () => library.api.callbackOAuth(callback)))
    setCookies(request, reply, answer.setCookies, config.publicUrl)
    if (sessionTokenIn(answer.setCookies) === null) return 'refused'
    if ((await signedIn(request, answer, 'oidc')) === null) return 'refused'
    // Linking may have ended other sessions of the account.
    await refreshCredentials()
    attempts.finished(request.ip)
    return 'signed-in'
  }

  async function answerChallenge(
    request: FastifyRequest,
    reply: FastifyReply,
    method: string,
    ask: (headers: Headers) => Promise<Response>,
    onceCode: string | null = null,
  ): Promise<SignInResult | Refusal> {
    attempts.from(request.ip)
    // Pass only this cookie: with the session cookie, the library would check the code for that session.
    const cookies = cookieHeader(request, (name) => name === SECOND_FACTOR_COOKIE)
    const answer = await readAnswer(await ask(libraryHeaders(request, cookies)))
    if (answer.ok && onceCode !== null && !(await isFirstUse(answer, onceCode))) return WRONG_CODE
    setCookies(request, reply, answer.setCookies, config.publicUrl)
    if (answer.ok) return (await signedIn(request, answer, method)) ?? WRONG
    const wrong = codeRefusal(answer)
    if (wrong === null) throw new Error(`The sign-in library answered ${answer.code}`)
    return wrong
  }

  /**
   * Whether the code is used for the first time: an observer must not use it again while it is valid (RFC 6238 5.2).
   */
  async function isFirstUse(answer: LibraryAnswer, code: string): Promise<boolean> {
    const session = await sessionIn(answer)
    if (session === null) return false
    if (await storage.useCode(session.operator.id, code, now())) return true
    await storage.endSessions(session.operator.id, { id: session.sessionId }, [])
    return false
  }

  /** Null: a directory has just deactivated the person, or the account has ended. */
  async function sessionIn(answer: LibraryAnswer): Promise<SessionRow | null> {
    const token = sessionTokenIn(answer.setCookies)
    if (token === null) throw new Error('The sign-in created no session')
    return storage.findSession(sessionCredential(token).hash)
  }

  async function signedIn(
    request: FastifyRequest,
    answer: LibraryAnswer,
    method: string,
  ): Promise<SignInResult | null> {
    const session = await sessionIn(answer)
    if (session === null) return null
    attempts.succeeded(session.operator.email, request.ip)
    const audit = personalEntry(session.operator, now(), 'operator.sign_in', null, { method }, request)
    await storage.appendAudit([audit])
    return { status: 'signed_in' }
  }

  async function refusedPassword(request: FastifyRequest, email: string): Promise<Refusal> {
    const operator = await storage.findOperatorByEmail(email)
    if (!operator) return WRONG
    const detail = { why: 'wrong_password' }
    const entry = personalEntry(operator, now(), 'operator.sign_in.refused', null, detail, request)
    // Not awaited: the reply's time would reveal that the account exists.
    void storage
      .appendAudit([entry])
      .catch((err: unknown) => request.log.error({ err }, 'could not log a refused sign-in'))
    return WRONG
  }
}

function isWrongPassword({ code }: LibraryAnswer): boolean {
  return code === 'INVALID_EMAIL_OR_PASSWORD' || code === 'INVALID_EMAIL'
}

function challengeCookies(request: FastifyRequest): string {
  return cookieHeader(request, (name) => name.startsWith(`${COOKIE_PREFIX}.`) && name !== SESSION_COOKIE)
}

/** Passes on only the library's cookies, also those of its errors, which can delete cookies. */

export function libraryHeaders(request: FastifyRequest, cookie: string): Headers {
  const headers = new Headers({ [ADDRESS_HEADER]: request.ip })
  if (cookie !== '') headers.set('cookie', cookie)
  const { 'user-agent': userAgent } = request.headers
  if (userAgent !== undefined) headers.set('user-agent', userAgent.slice(0, 500))
  return headers
}

type LibraryAnswer = Awaited<ReturnType<typeof readAnswer>>

export async function readAnswer(response: Response) {
  const text = await response.text()
  let body: Record<string, unknown> = {}
  try {
    body = (JSON.parse(text) as Record<string, unknown> | null) ?? {}
  } catch {
    // Redirects have no body.
  }
  return {
    ok: response.status < 400,
    code: response.status < 400 ? null : typeof body['code'] === 'string' ? body['code'] : `status ${response.status}`,
    body,
    setCookies: response.headers.getSetCookie(),
  }
}

const WRONG_CODE = refuse('unauthenticated', 'The code is wrong, was already used, or the sign-in has expired')

/** Null: the error has another reason than the code. */
export function codeRefusal({ code }: LibraryAnswer): Refusal | null {
  switch (code) {
    case 'ACCOUNT_TEMPORARILY_LOCKED':
      return refuse('rate_limited', 'Too many wrong codes', { retryAfterSeconds: 15 * 60 })
    case 'TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE':
    case 'INVALID_CODE':
    case 'INVALID_BACKUP_CODE':
    case 'INVALID_TWO_FACTOR_COOKIE':
    case 'TOTP_NOT_ENABLED':
    case 'BACKUP_CODES_NOT_ENABLED':
    // A concurrent sign-in has used one of the account's recovery codes.
    case 'status 409':
      return WRONG_CODE
    default:
      return null
  }
}
