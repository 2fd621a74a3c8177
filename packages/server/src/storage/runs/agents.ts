export interface AgentRow {
  id: string
  externalId: string | null
  reportedName: string
  displayName: string | null
  /** Null: it is in use, or a run of it started later. */
  archivedAt: number | null
  lastRunAt: number
}

export type AgentChange = { displayName: string } | { archivedAt: number | null }

export interface AgentFilter {
  withArchived: boolean
  search?: string | undefined
}
