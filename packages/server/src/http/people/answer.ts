/** Only cookies of the sign-in library's answers are passed on, also those of errors, which can delete cookies. */
import type { FastifyRequest } from 'fastify'
import { refuse, type Refusal } from '../web/reply-error.ts'
import { ADDRESS_HEADER } from './sign-in-library.ts'

export function libraryHeaders(request: FastifyRequest, cookie: string): Headers {
  const headers = new Headers({ [ADDRESS_HEADER]: request.ip })
  if (cookie !== '') headers.set('cookie', cookie)
  const { 'user-agent': userAgent } = request.headers
  if (userAgent !== undefined) headers.set('user-agent', userAgent.slice(0, 500))
  return headers
}

export type LibraryAnswer = Awaited<ReturnType<typeof readAnswer>>

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

export const WRONG_CODE = refuse('unauthenticated', 'The code is wrong, was already used, or the sign-in has expired')

/** Null: the code is not the reason. */
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
    // A concurrent sign-in used one of the account's recovery codes.
    case 'status 409':
      return WRONG_CODE
    default:
      return null
  }
}
