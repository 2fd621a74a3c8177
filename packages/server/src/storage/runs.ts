/** Runs and their usage. */
import type { RunStatus } from '@tacho/contract/run.ts'
import type { Page } from './page.ts'
import type { TraitKind } from './traits.ts'
import type { UncostedSum } from './uncosted.ts'

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
  /** What an operator called the agent. */
  agentDisplayName: string | null
  promptTokens: number
  completionTokens: number
  totalTokens: number
  costNanos: number
  eventCount: number
  differingRetries: number
  errorCount: number
  /** Lines, as in traits.ts. */
  traits: string
  /** Text of completeness.ts. */
  recorders: string | null
  /** Text of uncosted.ts. */
  uncosted: string | null
  /** Text of failure.ts. */
  failure: string | null
  failureMessage: string | null
  lastEventAt: number
  /** When its first event was stored. */
  receivedAt: number
  /** Null: not pinned. */
  pinnedAt: number | null
  /** When the stalled rule closed it; null: it did not. */
  ruleClosedAt: number | null
  /** Events whose payloads retention removed. */
  payloadsRemoved: number
}

/** What sums of gaps need of a run: one request reads thousands of them. */
export type GapRow = Pick<
  RunRow,
  'id' | 'runId' | 'startedAt' | 'agentId' | 'agentName' | 'agentDisplayName' | 'recorders'
>
export type GapFilter = Pick<RunFilter, 'agentId' | 'from' | 'to'>

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
  /** A run that the stalled rule closed counts as RUNNING. */
  onlyOutcomesEnd?: boolean | undefined
  sessionId?: string | undefined
  /** Only runs with events that did not arrive. */
  hasGaps?: true | undefined
  /** startedAt at or after. */
  from?: number | undefined
  /** startedAt before. */
  to?: number | undefined
  /** Only runs of the newest requests for approval, of which this many are examined. */
  approvalsLookedAt?: number | undefined
  /** Only runs that are stalled at this time. Needs `sift`. */
  stalledAt?: number | undefined
  /** Conditions without an index: each run is checked. */
  sift?: RunSift | undefined
}

export interface RunSift {
  costNanosMin: number
  /** From the start to the end, or to the latest event. */
  lengthMsMin: number
  errorsMin: number
  /** Names that its events must have. */
  traits: Partial<Record<TraitKind, string>>
  /** A page ends after scanning this many runs, however few match. */
  runsLookedAt: number
}

/** `lookedTo`: where to continue if the page ended at the scan limit; otherwise its last row. */
export type RunsRead = Page<RunRow> & { lookedTo?: RunPlace }

export interface RunPage {
  limit: number
  after: RunPlace | null
}

export interface RunPlace {
  startedAt: number
  id: string
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
  uncosted: UncostedSum[]
}
