import type { Done } from '@tacho/contract/operator/sign-in.ts'
import type { FastifyRequest } from 'fastify'
import { hashPassword, verifyPassword } from '../../domain/password.ts'
import type { SessionRow } from '../../storage/operators.ts'
import type { Deps } from '../deps.ts'
import { refuse } from '../reply-error.ts'
import { expireSessionCookie } from './sign-in/session-cookie.ts'
import type { Attempts } from './sign-in/attempts.ts'
import { auditOf } from './audit.ts'
import { checkTexts } from '../field.ts'
import { isoOf } from '../../domain/shown.ts'
import type { OperatorDeps } from './serve.ts'

export const DONE: Done = { done: true }

export function sessionsRoutes(deps: OperatorDeps, attempts: Attempts): void {
  const { serve, storage, now, refreshCredentials } = deps

  serve('signOut', async ({ request, reply }) => {
    const session = sessionOf(request)
    await end(request, session, session.sessionId, 'operator.sign_out')
    expireSessionCookie(request, reply, deps.config.publicUrl)
    return DONE
  })

  serve('listSessions', async ({ request }) => {
    const session = sessionOf(request)
    const rows = await storage.listSessions(session.operator.id, now())
    const items = rows.map((row) => ({
      id: row.id,
      current: row.id === session.sessionId,
      ...isoOf(row, 'createdAt', 'expiresAt', 'lastUsedAt'),
      address: row.ipAddress,
      userAgent: row.userAgent,
    }))
    return { items }
  })

  serve('endSession', async ({ request, params }) => {
    const session = sessionOf(request)
    const ended = await end(request, session, params.sessionId.toLowerCase(), 'operator.end_session')
    return ended > 0 ? DONE : refuse('not_found', 'The session does not exist')
  })

  serve('changePassword', async ({ request, body }) => {
    const { password, newPassword } = body
    const session = sessionOf(request)
    checkTexts({ password, newPassword })
    await checkPassword(deps, attempts, request, session, password)
    const { id } = session.operator
    const at = now()
    const audit = auditOf(request, at, 'operator.change_password', { kind: 'operator', id })
    const hash = await attempts.inTurn(request, () => hashPassword(newPassword))
    await storage.setPassword(id, hash, at, session.sessionId, [audit])
    await refreshCredentials()
    return DONE
  })

  async function end(request: FastifyRequest, session: SessionRow, id: string, action: string): Promise<number> {
    const audit = auditOf(request, now(), action, { kind: 'session', id })
    const ended = await storage.endSessions(session.operator.id, { id }, [audit])
    await refreshCredentials()
    return ended
  }
}

export function sessionOf({ session }: FastifyRequest): SessionRow {
  if (session !== null) return session
  throw refuse('forbidden', 'This requires a signed-in person, not a token')
}

export async function checkPassword(
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
