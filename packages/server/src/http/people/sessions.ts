import type { Done } from '@tacho/contract/people/sign-in.ts'
import type { FastifyRequest } from 'fastify'
import { hashPassword, verifyPassword } from '../../domain/people/password.ts'
import type { AuditEntry } from '../../storage/people/audit.ts'
import type { SessionRow } from '../../storage/people/operators.ts'
import type { Deps } from '../web/deps.ts'
import { refuse } from '../web/reply-error.ts'
import { expireSessionCookie } from './session-cookie.ts'
import type { Attempts } from './attempts.ts'
import { isoOf } from '../../domain/web/shown.ts'
import type { OperatorDeps } from '../web/serve.ts'

export const DONE: Done = { done: true }

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
