/** What operators did, and tried to do: who, when, what. Entries are only ever added. */
import type { PageById } from './page.ts'

export interface AuditEntry {
  /** UUIDv7 of `at`: entries are ordered by it. */
  id: string
  /** Null where the whole installation is concerned. */
  workspaceId: string | null
  environmentId: string | null
  at: number
  actorKind: 'operator' | 'token'
  actorId: string
  actorName: string
  /** `<noun>.<verb>`, such as `policy.deploy`; a refused attempt ends in `.refused`. */
  action: string
  targetKind: string
  targetId: string
  /** JSON object; never a secret, never a payload. */
  detail: string
  requestId: string
}

/** Which entries are listed; each part narrows. */
export interface AuditFilter {
  action?: string | undefined
  actorId?: string | undefined
  targetKind?: string | undefined
  targetId?: string | undefined
  /** At or after. */
  from?: number | undefined
  /** Before. */
  to?: number | undefined
}

export interface AuditStore {
  /** For what changes nothing itself, such as a refused attempt; acts that change something insert their own. */
  appendAudit(entries: AuditEntry[]): Promise<void>
  /** Newest first; null: entries of every workspace and of the installation. */
  listAudit(workspaceId: string | null, page: PageById, filter?: AuditFilter): Promise<AuditEntry[]>
}
