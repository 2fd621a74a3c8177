/** The public interface for agents: record events, report issues, request approval, read runs. */
import type { PUBLIC_PREFIX, ROUTES } from '@tacho/contract/web/routes.ts'
import type { Client } from './call.ts'
import { connectionTo, type ConnectionOptions } from './connection.ts'
import { createClient } from './create-client.ts'
import { PUBLIC_ENDPOINTS } from './endpoints/public.ts'

export type PublicRoutes = typeof ROUTES
export type PublicClient = Client<PublicRoutes>

export interface PublicOptions extends ConnectionOptions {
  /** Origin of the service, such as `http://localhost:4680`. */
  url: string
  /** The key determines workspace and environment. */
  apiKey: string
}

const PREFIX: typeof PUBLIC_PREFIX = '/openapi/v1'

/** A client of the public interface. Sends nothing before the first call. */
export function createPublicClient({ url, apiKey, ...options }: PublicOptions): PublicClient {
  const headers = { 'X-API-Key': apiKey }
  return createClient<PublicRoutes>(PUBLIC_ENDPOINTS, connectionTo({ url, headers, prefix: PREFIX }, options))
}
