import type { FastifyRequest } from 'fastify'
import { network } from './network.ts'

/** Memory and turns are shared by workspace, and in it by key or operator. */
export interface Holder {
  workspace: string
  credential: string
}

/** Before a workspace is known, the operator or the address counts as one. */
export function holderOf({ apiKey, operator, actor, ip }: FastifyRequest): Holder {
  if (apiKey) return { workspace: apiKey.workspaceId, credential: apiKey.id }
  const credential = actor?.id ?? network(ip)
  return { workspace: operator?.workspace?.id ?? credential, credential }
}
