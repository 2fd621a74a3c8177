import { uuidv7 } from '../engine/uuid.ts'
import type { AuditEntry } from './operators.ts'

/** A new entry of the audit log. `detail` must have no secrets, payloads or comments. */
export function entryBy(
  actor: { kind: AuditEntry['actorKind']; id: string; name: string },
  scope: Pick<AuditEntry, 'at' | 'workspaceId' | 'environmentId'>,
  act: Pick<AuditEntry, 'action' | 'targetKind' | 'targetId'> & { detail: object },
  request: { id: string; ip?: string | null },
): AuditEntry {
  const { kind: actorKind, id: actorId, name: actorName } = actor
  const detail = JSON.stringify(act.detail)
  const [requestId, address] = [request.id, request.ip ?? null]
  return { id: uuidv7(scope.at), ...scope, actorKind, actorId, actorName, ...act, detail, requestId, address }
}
