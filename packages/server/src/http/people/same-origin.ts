import type { FastifyRequest } from 'fastify'
import { refuse, type Refusal } from '../web/reply-error.ts'

/** Pages cannot change these headers. Without them and without a cookie, a request is not from a browser. */
export function foreignOrigin(
  request: FastifyRequest,
  publicUrl: string | null,
  { byCookie }: { byCookie: boolean },
): Refusal | null {
  const { 'sec-fetch-site': site, origin } = request.headers
  if (site !== undefined) return site === 'same-origin' ? null : foreign()
  if (origin === undefined) return byCookie ? foreign() : null
  return isOurs(origin, request, publicUrl) ? null : foreign()
}

function isOurs(origin: string, { headers }: FastifyRequest, publicUrl: string | null): boolean {
  const given = URL.parse(origin)
  if (given === null) return false
  return given.host === headers.host || (publicUrl !== null && given.origin === new URL(publicUrl).origin)
}

function foreign(): Refusal {
  return refuse('forbidden', 'Cross-origin request refused')
}
