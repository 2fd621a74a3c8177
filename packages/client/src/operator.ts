/** The operator API: everything the console shows. */
import type { OPERATOR_PREFIX, OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import type { Client } from './call.ts'
import { connectionTo, type ConnectionOptions } from './connection.ts'
import { createClient } from './create-client.ts'
import { OPERATOR_ENDPOINTS } from './endpoints/operator.ts'

export type OperatorRoutes = typeof OPERATOR_ROUTES
export type OperatorClient = Client<OperatorRoutes>

export interface OperatorOptions extends ConnectionOptions {
  /** Origin of the service, such as `http://localhost:4680`; empty in a page of the service itself. */
  url: string
  /** An operator token. Without one, the browser's session cookie authenticates the call. */
  token?: string | undefined
}

export const PREFIX: typeof OPERATOR_PREFIX = '/operator/v1'

/** A client of the operator API. Sends nothing before the first call. */
export function createOperatorClient({ url, token, ...options }: OperatorOptions): OperatorClient {
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` }
  return createClient<OperatorRoutes>(OPERATOR_ENDPOINTS, connectionTo({ url, headers, prefix: PREFIX }, options))
}
