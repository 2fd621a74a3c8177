/** Whether a browser says that a request comes from one of our own pages. */
import type { FastifyRequest } from 'fastify'
import { refuse, type Refusal } from '../reply-error.ts'

/**
 * The refusal of a request that another site may have caused. Browsers add the headers, pages cannot change them.
 * A request without them is no browser's, so that it is let through where no cookie speaks for it.
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
  return refuse('forbidden', 'This is taken from our own pages alone: the request says it comes from elsewhere')
}
