/** Agents as operators see them. Agents are created by their first event. */

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

/** The reported name as `displayName` takes an earlier one away. */
export type AgentChange = { displayName: string } | { archivedAt: number | null }

export interface AgentFilter {
  withArchived: boolean
  /** A part of a name or of the external id. The search is bounded by LIMITS.searchedAgentNames. */
  search?: string | undefined
}
