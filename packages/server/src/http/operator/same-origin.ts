import type { FastifyRequest } from 'fastify'
import { refuse, type Refusal } from '../reply-error.ts'

/**
 * Browsers set these headers, and pages cannot change them. A request without them is not from a browser, so it is
 * allowed unless it uses a cookie.
 */
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
