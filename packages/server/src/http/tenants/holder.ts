import type { FastifyRequest } from 'fastify'
import type { Holder } from '../../storage/engine/turns-by-workspace.ts'
import { network } from './network.ts'

/** Before a workspace is known, the operator or the address counts as one. */
export function holderOf({ apiKey, operator, actor, ip }: FastifyRequest): Holder {
  if (apiKey) return { workspace: apiKey.workspaceId, credential: apiKey.id }
  const credential = actor?.id ?? network(ip)
  return { workspace: operator?.workspace?.id ?? credential, credential }
}
