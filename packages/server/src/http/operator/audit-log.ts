import type { AuditEntry, AuditPage, AuditQuery } from '@tacho/contract/operator/audit.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isoTime } from '../../domain/run.ts'
import { isStorableText } from '../../domain/text.ts'
import type { AuditEntry as AuditRow } from '../../storage/audit.ts'
import type { Deps } from '../deps.ts'
import { serveRoute } from '../serve-route.ts'
import { workspaceInPath } from './tokens.ts'
import { listPage, byId, NOTHING } from '../paging.ts'
import { optionalTimeOf } from '../field.ts'

export function auditLogRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors } = deps

  serveRoute(app, OPERATOR_ROUTES.listAudit, deps, ({ request, query }) => list(request, query))
  serveRoute(app, OPERATOR_ROUTES.listInstallationAudit, deps, ({ request, query }) => list(request, query))

  async function list(request: FastifyRequest, query: AuditQuery): Promise<AuditPage> {
    const { action, actorId, targetKind, targetId } = query
    const times = { from: optionalTimeOf('from', query.from), to: optionalTimeOf('to', query.to) }
    const texts = { action, actorId, targetKind, targetId }
    if (!Object.values(texts).every((text) => isStorableText(text ?? ''))) return NOTHING
    const workspaceId = workspaceInPath(request)
    const filter = { ...texts, ...times }
    return listPage(cursors, query, {
      of: ['audit', workspaceId, filter],
      read: (page) => storage.listAudit(workspaceId, page, filter),
      toItem: toAuditEntry,
      placeOf: byId,
    })
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
