import type { FastifyRequest } from 'fastify'
import type { Done } from '@tacho/contract/people/sign-in.ts'
import { hashPassword, verifyPassword, sessionCredential } from '../../domain/people/credential.ts'
import type { AuditEntry, SessionRow } from '../../storage/people/operators.ts'
import type { Deps } from '../web/deps.ts'
import { refuse } from '../web/reply-error.ts'
import { expireSessionCookie, cookieHeader, SESSION_COOKIE, sessionTokenIn, setCookies } from './sign-in-records.ts'
import type { Attempts } from './attempts.ts'
import { isoOf } from '../../domain/web/shown.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'
import { codeRefusal, libraryHeaders, readAnswer } from './sign-in.ts'

const DONE: Done = { done: true }

export function sessionsRoutes(deps: OperatorDeps, attempts: Attempts): void {
  const { serve, storage, refreshCredentials } = deps

  serve('signOut', async ({ request, reply, audit }) => {
    const session = sessionOf(request)
    await end(session, session.sessionId, audit(session.sessionId))
    expireSessionCookie(request, reply, deps.config.publicUrl)
    return DONE
  })

  serve('listSessions', async ({ request, at }) => {
    const session = sessionOf(request)
    const rows = await storage.listSessions(session.operator.id, at)
    const items = rows.map((row) => ({
      id: row.id,
      current: row.id === session.sessionId,
      ...isoOf(row, 'createdAt', 'expiresAt', 'lastUsedAt'),
      address: row.ipAddress,
      userAgent: row.userAgent,
    }))
    return { items }
  })

  serve('endSession', async ({ request, params: { sessionId: id }, audit }) => {
    const ended = await end(sessionOf(request), id, audit(id))
    return ended > 0 ? DONE : refuse('not_found', 'The session does not exist')
  })

  serve('changePassword', async ({ request, body: { password, newPassword }, at, audit }) => {
    const session = sessionOf(request)
    await checkPassword(deps, attempts, request, session, password)
    const { id } = session.operator
    const hash = await attempts.inTurn(request, () => hashPassword(newPassword))
    await storage.setPassword(id, hash, at, session.sessionId, audit(id))
    await refreshCredentials()
    return DONE
  })

  async function end({ operator }: SessionRow, id: string, entries: AuditEntry[]): Promise<number> {
    const ended = await storage.endSessions(operator.id, { id }, entries)
    await refreshCredentials()
    return ended
  }
}

export function sessionOf({ session }: FastifyRequest): SessionRow {
  if (session !== null) return session
  throw refuse('forbidden', 'This requires a signed-in person, not a token')
}

async function checkPassword(
  { storage }: Pick<Deps, 'storage'>,
  attempts: Attempts,
  request: FastifyRequest,
  { operator }: SessionRow,
  password: string,
): Promise<void> {
  attempts.from(request.ip)
  attempts.on(operator.email)
  const hash = await storage.readPassword(operator.id)
  if (hash === null) throw refuse('conflict', 'You sign in at the identity provider, so you have no password here')
  const isRight = await attempts.inTurn(request, () => verifyPassword(password, hash))
  if (!isRight) throw refuse('forbidden', 'The password is wrong')
  attempts.succeeded(operator.email, request.ip)
}

/** none --added--> unconfirmed --valid code--> confirmed (required to sign in) --removed--> none */

export function secondFactorRoutes(deps: OperatorDeps, attempts: Attempts): void {
  const { serve, storage, signIn, config, now, refreshCredentials } = deps

  serve('addSecondFactor', async ({ request, body: { password } }) => {
    const session = sessionOf(request)
    await checkPassword(deps, attempts, request, session, password)
    const library = await signIn.passwords()
    const headers = libraryHeaders(request, sessionCookie(request))
    const response = await attempts.inTurn(request, () =>
      library.api.enableTwoFactor({ body: { password }, headers, asResponse: true }),
    )
    const answer = await readAnswer(response)
    if (answer.code === 'TOTP_ALREADY_ENABLED')
      return refuse('conflict', 'There already is a second factor: remove it first')
    const { totpURI, backupCodes } = answer.body
    if (!answer.ok || typeof totpURI !== 'string' || !Array.isArray(backupCodes)) {
      throw new Error(`The sign-in library answered ${answer.code}`)
    }
    return { uri: totpURI, recoveryCodes: backupCodes.map(String) }
  })

  serve('confirmSecondFactor', async ({ request, reply, body, audit }) => {
    const session = sessionOf(request)
    const { operator } = session
    if (operator.twoFactor === 1) return refuse('conflict', 'The second factor is already confirmed')
    attempts.from(request.ip)
    attempts.on(operator.email)
    const library = await signIn.passwords()
    const headers = libraryHeaders(request, sessionCookie(request))
    const code = body.code.replaceAll(' ', '')
    // Use up the code before it is checked, so that an observer cannot sign in with it meanwhile.
    if (!(await storage.useCode(operator.id, code, now())))
      return refuse('forbidden', 'The code is wrong or was already used')
    const answer = await readAnswer(await library.api.verifyTOTP({ body: { code }, headers, asResponse: true }))
    if (!answer.ok) {
      if (answer.code === 'TOTP_NOT_ENABLED') return refuse('conflict', 'There is no second factor to confirm')
      if (codeRefusal(answer) === null) throw new Error(`The sign-in library answered ${answer.code}`)
      return refuse('forbidden', 'The code is wrong')
    }
    attempts.succeeded(operator.email, request.ip)
    setCookies(request, reply, answer.setCookies, config.publicUrl)
    await storage.appendAudit(audit(operator.id))
    // End other sessions, because they began without the second factor. The library may have replaced the caller's
    // session.
    const token = sessionTokenIn(answer.setCookies)
    const operatorSession = token === null ? session : await storage.findSession(sessionCredential(token).hash)
    await storage.endSessions(operator.id, { exceptId: operatorSession?.sessionId ?? session.sessionId }, [])
    await refreshCredentials()
    return DONE
  })

  serve('removeSecondFactor', async ({ request, body: { password }, at, audit }) => {
    const session = sessionOf(request)
    await checkPassword(deps, attempts, request, session, password)
    const { id } = session.operator
    await storage.removeSecondFactor(id, at, audit(id))
    await refreshCredentials()
    return DONE
  })
}

function sessionCookie(request: Parameters<typeof cookieHeader>[0]): string {
  return cookieHeader(request, (name) => name === SESSION_COOKIE)
}
