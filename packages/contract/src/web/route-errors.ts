/** Lists the errors of a route: its own errors, and those implied by its access, method and body. */
import type { TSchema } from 'typebox'
import { ERRORS, type ErrorCode } from './errors.ts'
import type { Access, Route } from './route.ts'

/** The error codes of one route as a type, for clients. Matches `errorsOf`. */
export type ErrorOf<R extends Route> =
  | R['errors'][number]
  | (typeof EVERYWHERE)[number]
  | (R extends { body: TSchema } ? (typeof OF_BODIES)[number] : never)
  | (R extends { access: 'anyone' } ? never : 'unauthenticated')
  | (R extends { method: 'GET'; access: 'anyone' | 'signed-in' } ? never : 'forbidden')
  | (R extends { method: 'GET' } ? never : 'storage_full')

/** Any request can be malformed, too large or too slow, and any request can fail when the service is in trouble. */
const EVERYWHERE = [
  'rate_limited',
  'invalid_request',
  'request_timeout',
  'uri_too_long',
  'headers_too_large',
  'internal',
  'overloaded',
  'storage_unavailable',
  'configuration_damaged',
  'shutting_down',
] as const satisfies readonly ErrorCode[]

/** Any JSON body can cause these before its content is checked. */
const OF_BODIES = [
  'body_too_large',
  'unsupported_media_type',
  'invalid_json',
  'invalid_utf8',
  'invalid_encoding',
] as const satisfies readonly ErrorCode[]

/** Every code the route can answer with, in the order of the error table. */
export function errorsOf(route: Route): ErrorCode[] {
  const access = accessOf(route)
  const codes = new Set<ErrorCode>([...EVERYWHERE, ...(route.body ? OF_BODIES : []), ...route.errors])
  if (access !== 'anyone') codes.add('unauthenticated')
  // With a session cookie, changes are accepted only from the server's own origin.
  if (route.method !== 'GET' || (access !== 'anyone' && access !== 'signed-in')) codes.add('forbidden')
  if (route.method !== 'GET') codes.add('storage_full')
  return (Object.keys(ERRORS) as ErrorCode[]).filter((code) => codes.has(code))
}

/** The access of an operator API route; null for a public route. */
export function accessOf(route: Route): Access | null {
  return 'access' in route ? (route.access as Access) : null
}
