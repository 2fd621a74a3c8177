import { uuidv7 } from '../../../storage/uuid.ts'
import type { AuditEntry } from '../../../storage/audit.ts'

/** Before a credential identifies the person. */
export function personalEntry(
  person: { id: string; email: string },
  at: number,
  action: string,
  workspaceId: string | null,
  detail: Record<string, unknown>,
  requestId = '',
): AuditEntry {
  return {
    id: uuidv7(at),
    workspaceId,
    environmentId: null,
    at,
    actorKind: 'operator',
    actorId: person.id,
    actorName: person.email,
    action,
    targetKind: 'operator',
    targetId: person.id,
    detail: JSON.stringify(detail),
    requestId,
  }
}
