import type { FastifyRequest } from 'fastify'
import { network } from './network.ts'

/** The holder whose share of the memory for bodies and replies a request uses: its key, its operator or its address. */
export function holderOf({ apiKey, actor, ip }: FastifyRequest): string {
  return apiKey?.id ?? actor?.id ?? network(ip)
}
