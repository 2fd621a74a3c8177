export interface AgentRow {
  id: string
  externalId: string | null
  reportedName: string
  /** Null: operators see the reported name. */
  displayName: string | null
  /** Null: it is in use, or a run of it started later. */
  archivedAt: number | null
  lastRunAt: number
}

/** A `displayName` equal to the reported name removes an earlier one. */
export type AgentChange = { displayName: string } | { archivedAt: number | null }

export interface AgentFilter {
  withArchived: boolean
  /** Part of a name or of the external id. LIMITS.searchedAgentNames bounds the search. */
  search?: string | undefined
}
