/** Agents as operators see them. Agents are created by their first event. */
import type { AuditEntry } from './audit.ts'
import type { PageById } from './page.ts'

export interface AgentStore {
  /** What operators see as the names of agents, by external id. Agents without an event are missing. */
  findAgentNames(environmentId: string, agentIds: readonly string[]): Promise<[agentId: string, name: string][]>
  /** Those with a stored run, in the order in which they were first seen. */
  listAgents(environmentId: string, page: PageById, withArchived: boolean): Promise<AgentRow[]>
  /**
   * Null: the environment has no such agent. `no_id`: its name is what identifies it. Nothing is written or audited if it is
   * so already.
   */
  changeAgent(
    environmentId: string,
    id: string,
    change: AgentChange,
    audit: AuditEntry[],
  ): Promise<AgentRow | 'no_id' | null>
}

export interface AgentRow {
  id: string
  externalId: string | null
  reportedName: string
  /** What an operator called it; null: operators see the reported name. */
  displayName: string | null
  /** Null: it is in use, or a run of it started later. */
  archivedAt: number | null
  lastRunAt: number
}

/** The reported name as `displayName` takes an earlier one away. */
export type AgentChange = { displayName: string } | { archivedAt: number | null }
