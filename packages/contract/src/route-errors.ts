/** Which errors a route answers with: its own, and those that follow from who may call it and how. */
import { ERRORS, type ErrorCode } from './errors.ts'
import type { Access } from './operator/access.ts'
import type { Route } from './route.ts'

/** The codes of one row, for clients: `errorsOf` as a type. */
export type ErrorOf<R extends Route> =
  | R['errors'][number]
  | (typeof EVERYWHERE)[number]
  | (R extends { access: 'anyone' } ? never : 'unauthenticated')
  | (R extends { method: 'GET'; access: 'anyone' | 'signed-in' } ? never : 'forbidden')
  | (R extends { method: 'GET' } ? never : 'storage_full')

/** Any request may be malformed, too large or too slow, and any may meet a service in trouble. */
const EVERYWHERE = [
  'rate_limited',
  'invalid_request',
  'request_timeout',
  'uri_too_long',
  'headers_too_large',
  'internal',
  'overloaded',
  'storage_unavailable',
  'shutting_down',
] as const satisfies readonly ErrorCode[]

/** Every code that the row's endpoint may answer with, in the order of the table of errors. */
export function errorsOf(route: Route): ErrorCode[] {
  const access = accessOf(route)
  const codes = new Set<ErrorCode>([...EVERYWHERE, ...route.errors])
  if (access !== 'anyone') codes.add('unauthenticated')
  // With a cookie, a request that changes something must come from our own pages.
  if (route.method !== 'GET' || (access !== 'anyone' && access !== 'signed-in')) codes.add('forbidden')
  if (route.method !== 'GET') codes.add('storage_full')
  return (Object.keys(ERRORS) as ErrorCode[]).filter((code) => codes.has(code))
}

/** Who may call a row of the operator API; null for one of the public interface. */
export function accessOf(route: Route): Access | null {
  return 'access' in route ? (route.access as Access) : null
}
