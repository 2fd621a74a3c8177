import type { RunStatus } from '@tacho/contract/runs/run.ts'
import type { ScoreFilter } from '@tacho/contract/runs/score-filter.ts'
import type { RunSort } from '@tacho/contract/engine/words.ts'
import type { Page, PageAfter } from '../engine/page.ts'
import type { TraitKind } from './traits.ts'
import type { UncostedSum } from './uncosted.ts'
import type { UsageSums } from './usage.ts'

export interface RunRow extends UsageSums {
  /** Internal: a parameter `run` is this id, `runId` the external one. */
  id: string
  runId: string
  sessionId: string | null
  userId: string | null
  status: RunStatus
  startedAt: number
  endedAt: number | null
  agentId: string
  agentExternalId: string | null
  agentName: string
  agentDisplayName: string | null
  eventCount: number
  differingRetries: number
  errorCount: number
  traits: string
  recorders: string | null
  uncosted: string | null
  failure: string | null
  failureMessage: string | null
  said: string | null
  lastEventAt: number
  receivedAt: number
  pinnedAt: number | null
  ruleClosedAt: number | null
  payloadsRemoved: number
  /** The number that sorts the list, if not the start. */
  rank?: number
}

/** One request reads thousands of them. */
export type GapRow = Pick<
  RunRow,
  'id' | 'runId' | 'startedAt' | 'agentId' | 'agentName' | 'agentDisplayName' | 'recorders'
>
export type GapFilter = Pick<RunFilter, 'agentId' | 'from' | 'to'>

export interface RunFilter {
  /** Prefix of the external run id, or an exact session id, agent id or name. Bounded by LIMITS.searched…. */
  search?: string | undefined
  /** Internal id. */
  agentId?: string | undefined
  /** External id or name. The search is bounded by LIMITS.searchedAgents…. */
  agent?: string | undefined
  status?: RunStatus | undefined
  /** A run that the stalled rule closed counts as RUNNING. */
  onlyOutcomesEnd?: boolean | undefined
  sessionId?: string | undefined
  userId?: string | undefined
  hasGaps?: true | undefined
  from?: number | undefined
  to?: number | undefined
  /** Only runs of the newest requests for approval, of which this many are examined. */
  approvalsLookedAt?: number | undefined
  /** Needs `sift`. */
  stalledAt?: number | undefined
  /** Conditions that no index answers. */
  sift?: RunSift | undefined
  /** Needs `sift`. */
  score?: ScoreFilter | undefined
  /** Only runs without a score of this name. Needs `sift`. */
  unscored?: string | undefined
  /** In percent, sampled. Needs `sift`. */
  share?: number | undefined
  scoreOrder?: 'lowest' | 'highest' | undefined
  /** Only ended runs, the greatest first. */
  rankedBy?: RunRanking | undefined
}

/** `runsLookedAt`: if other filters are given, a page ends after scanning this many runs, however few match. */
export interface RunRanking {
  by: Exclude<RunSort, 'newest'>
  runsLookedAt: number
}

export interface RunSift {
  costNanosMin: number
  /** To the end, or to the latest event. */
  lengthMsMin: number
  errorsMin: number
  /** Null: any of this kind. */
  traits: Partial<Record<TraitKind, string | null>>
  runsLookedAt: number
}

/** `lookedTo`: where to continue if the page ended at a bound; otherwise its last row. */
export type RunsRead = Page<RunRow> & { lookedTo?: RunPlace }

export type RunPage = PageAfter<RunPlace>

export interface RunPlace {
  startedAt: number
  id: string
  rank?: number
}

export type UsagePage = PageAfter<{ hour: number; agentId: string; modelKey: string }>

export interface UsageHourRow extends UsageSums {
  hour: number
  agentId: string
  modelKey: string
  agentName: string
  model: string
  events: number
  uncosted: UncostedSum[]
}

/** What a trace needs to find the span that ends it. */
export interface TraceSpan {
  eventId: string
  eventType: string
  spanId: string | null
  parentSpanId: string | null
  time: number
  receivedAt: number
  latencyMicros: number
}

export interface UnendedTrace {
  runId: string
  spans: TraceSpan[]
  /** It ends after this time without an event. */
  idleMs: number
}
