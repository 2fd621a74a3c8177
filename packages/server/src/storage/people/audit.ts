export interface AuditEntry {
  /** UUIDv7 of `at`; entries are ordered by it. */
  id: string
  /** Null for the whole installation. */
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
  detail: string
  requestId: string
  /** Of the caller, as the proxy settings resolve it; null: the service itself, or an entry of an earlier build. */
  address: string | null
}

export interface AuditFilter {
  action?: string | undefined
  actorId?: string | undefined
  targetKind?: string | undefined
  targetId?: string | undefined
  from?: number | undefined
  to?: number | undefined
}
