import type { FastifyRequest } from 'fastify'
import type { OperatorTokenRow } from '../../storage/operator-tokens.ts'
import { actorWith, type Actor } from './access.ts'

export function tokenActor({ id, name, workspaceId, role }: OperatorTokenRow): Actor {
  const who = { kind: 'token', id, name } as const
  return workspaceId === null ? actorWith(who, role, new Map()) : actorWith(who, null, new Map([[workspaceId, role]]))
}

export function bearerOf({ headers }: FastifyRequest): string | undefined {
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
}
