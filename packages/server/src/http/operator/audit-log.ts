import { LIMITS } from '@tacho/contract/limits.ts'
import type { AuditEntry, AuditPage, AuditQuery } from '@tacho/contract/operator/audit.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isoTime } from '../../domain/run.ts'
import { isStorableText } from '../../domain/text.ts'
import type { AuditEntry as AuditRow } from '../../storage/audit.ts'
import type { Deps } from '../deps.ts'
import { pageFrom, startOf } from '../paging.ts'
import { isRefusal, type Refusal } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { timeOf } from '../field.ts'
import { workspaceInPath } from './tokens.ts'

export function auditLogRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors } = deps

  serveRoute(app, OPERATOR_ROUTES.listAudit, deps, ({ request, query }) => list(request, query))
  serveRoute(app, OPERATOR_ROUTES.listInstallationAudit, deps, ({ request, query }) => list(request, query))

  async function list(request: FastifyRequest, query: AuditQuery): Promise<AuditPage | Refusal> {
    const { limit = LIMITS.operatorPageDefault, cursor, action, actorId, targetKind, targetId } = query
    const from = query.from === undefined ? undefined : timeOf('from', query.from)
    const to = query.to === undefined ? undefined : timeOf('to', query.to)
    if (isRefusal(from)) return from
    if (isRefusal(to)) return to
    const workspaceId = workspaceInPath(request)
    const texts = [action, actorId, targetKind, targetId]
    const walk = ['audit', workspaceId, ...texts, from, to]
    const start = startOf<{ id: string }>(cursors, walk, cursor)
    if (isRefusal(start)) return start
    // A text that no store can keep matches no entry.
    if (!texts.every((text) => isStorableText(text ?? ''))) return { items: [], nextCursor: null }
    const filter = { action, actorId, targetKind, targetId, from, to }
    const page = await storage.listAudit(workspaceId, { limit, after: start.after?.id ?? null }, filter)
    return pageFrom(page, toAuditEntry, ({ id }) => cursors.write(walk, { id }))
  }
}

function toAuditEntry(row: AuditRow): AuditEntry {
  return {
    id: row.id,
    at: isoTime(row.at),
    workspaceId: row.workspaceId,
    environmentId: row.environmentId,
    actor: { kind: row.actorKind, id: row.actorId, name: row.actorName },
    action: row.action,
    target: { kind: row.targetKind, id: row.targetId },
    detail: JSON.parse(row.detail) as Record<string, unknown>,
    requestId: row.requestId,
  }
}
