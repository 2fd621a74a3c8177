import type { FastifyRequest } from 'fastify'
import { entryBy, type AuditEntry } from '../../storage/people/operators.ts'

export interface Acting {
  scope: {
    actor: { kind: Exclude<AuditEntry['actorKind'], 'alert'>; id: string; name: string }
    workspace: { id: string } | null
    environment: { id: string } | null
  }
  request: AuditedRequest
}

/** The parts of a Fastify request that an entry needs. */
export interface AuditedRequest {
  id: string
  ip: string
}

export function actingIn(request: FastifyRequest): Acting {
  const { operator } = request
  if (!operator) throw new Error('the route is not behind the access hook')
  return { scope: operator, request }
}

/** `detail` must have no secrets, payloads or comments. The actor comes from the credentials, never from the body. */
export function auditOf(
  request: FastifyRequest,
  now: number,
  action: string,
  target: { kind: string; id: string },
  detail: object = {},
): AuditEntry {
  return entryOf(actingIn(request), now, action, target, detail)
}

export function entryOf(
  { scope: { actor, workspace, environment }, request }: Acting,
  now: number,
  action: string,
  target: { kind: string; id: string },
  detail: object,
): AuditEntry {
  const scope = { at: now, workspaceId: workspace?.id ?? null, environmentId: environment?.id ?? null }
  return entryBy(actor, scope, { action, targetKind: target.kind, targetId: target.id, detail }, request)
}

export function personalEntry(
  { id, email }: { id: string; email: string },
  now: number,
  action: string,
  workspaceId: string | null,
  detail: object,
  request: AuditedRequest,
): AuditEntry {
  const actor = { kind: 'operator', id, name: email } as const
  const scope = { actor, workspace: workspaceId === null ? null : { id: workspaceId }, environment: null }
  return entryOf({ scope, request }, now, action, { kind: 'operator', id }, detail)
}
