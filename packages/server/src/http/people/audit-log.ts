import type { AuditEntry } from '@tacho/contract/people/audit.ts'
import { isoTime } from '../../storage/engine/iso-time.ts'
import { isStorableText } from '../../domain/web/text.ts'
import type { AuditEntry as AuditRow } from '../../storage/people/audit.ts'
import { listById, NOTHING } from '../web/paging.ts'
import { optionalTimeOf } from '../web/field.ts'
import type { OperatorDeps } from '../web/serve.ts'

export function auditLogRoutes({ serve, storage }: OperatorDeps): void {
  serve(['listAudit', 'listInstallationAudit'], ({ query, workspace, walk }) => {
    const { action, actorId, targetKind, targetId } = query
    const times = { from: optionalTimeOf('from', query.from), to: optionalTimeOf('to', query.to) }
    const texts = { action, actorId, targetKind, targetId }
    if (!Object.values(texts).every((text) => isStorableText(text ?? ''))) return NOTHING
    const filter = { ...texts, ...times }
    return listById(walk, (page) => storage.listAudit(workspace?.id ?? null, page, filter), toAuditEntry)
  })
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
    address: row.address,
  }
}
