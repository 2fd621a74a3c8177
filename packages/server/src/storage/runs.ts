/** Runs and their usage. */
import type { RunStatus } from '@tacho/contract/run.ts'
import type { Page } from './page.ts'

export interface RunStore {
  /** External id first, then internal UUID. */
  findRun(environmentId: string, runIdOrUuid: string): Promise<RunRow | null>
  /** Newest startedAt first, then internal id, both descending. */
  listRuns(environmentId: string, filter: RunFilter, page: RunPage): Promise<Page<RunRow>>
  /**
   * Sums of the hours from `fromHour` to `toHour` (both inclusive, start of the hour), ordered by hour, agent and model
   * key.
   */
  readUsage(environmentId: string, fromHour: number, toHour: number, page: UsagePage): Promise<Page<UsageHourRow>>
}

export interface RunRow {
  id: string
  runId: string
  sessionId: string | null
  status: RunStatus
  startedAt: number
  endedAt: number | null
  agentId: string
  agentExternalId: string | null
  agentName: string
  promptTokens: number
  completionTokens: number
  totalTokens: number
  costNanos: number
  eventCount: number
  differingRetries: number
  lastEventAt: number
  /** When its first event was stored. */
  receivedAt: number
}

export interface RunFilter {
  /**
   * Prefix of the external run id, or an exact session id, agent id or name. The search is bounded by LIMITS.searched….
   */
  search?: string | undefined
  /** Internal id. */
  agentId?: string | undefined
  /** External id or name. The search is bounded by LIMITS.searchedAgents…. */
  agent?: string | undefined
  status?: RunStatus | undefined
  sessionId?: string | undefined
  /** startedAt at or after. */
  from?: number | undefined
  /** startedAt before. */
  to?: number | undefined
}

export interface RunPage {
  limit: number
  after: { startedAt: number; id: string } | null
}

export interface UsagePage {
  limit: number
  after: { hour: number; agentId: string; modelKey: string } | null
}

export interface UsageHourRow {
  hour: number
  agentId: string
  modelKey: string
  agentName: string
  model: string
  events: number
  promptTokens: number
  completionTokens: number
  totalTokens: number
  costNanos: number
}
