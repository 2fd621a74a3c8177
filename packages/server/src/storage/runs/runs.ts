import type { RunStatus } from '@tacho/contract/runs/run.ts'
import type { ScoreFilter } from '@tacho/contract/runs/score-filter.ts'
import type { RunSort } from '@tacho/contract/engine/words.ts'
import type { RUN_FILTERS, RunFiltersBy, RunFilterValues } from '@tacho/contract/runs/run-filters.ts'
import type { StoredFilter } from '@tacho/contract/web/filter.ts'
import type { RunView } from '@tacho/contract/runs/run-view.ts'
import type { Page, PageAfter, PatchOf, RowFor } from '../engine/page.ts'
import type { Judge } from './scores.ts'
import type { UncostedSum, UsageSums } from './usage.ts'

export interface RunRow extends UsageSums {
  /** Internal id. A parameter `run` is this id, `runId` the external one. */
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
  /** The number by which the list is sorted, if not by start. */
  rank?: number
}

/** Only the columns that show a run's gaps, because one request reads thousands of rows. */
export type GapRow = Pick<
  RunRow,
  'id' | 'runId' | 'startedAt' | 'agentId' | 'agentName' | 'agentDisplayName' | 'recorders'
>
export type GapFilter = Pick<RunCriteria, 'agentId' | 'from' | 'to'>

export interface RunCriteria extends Pick<StoredFilter<typeof RUN_FILTERS>, RunFiltersBy<'index'> | 'agent' | 'q'> {
  /** A run that the stalled rule closed counts as RUNNING. */
  onlyOutcomesEnd?: boolean | undefined
  /** Only runs of the newest requests for approval: this many requests are examined. */
  approvalsLookedAt?: number | undefined
  /** Needs `scan`. */
  stalledAt?: number | undefined
  scan?: RunScan | undefined
  /** Needs `scan`. */
  score?: ScoreFilter | undefined
  /** Only runs without a score of this name. Needs `scan`. */
  unscored?: string | undefined
  /** Only runs without a score of this name by this judge. Needs `scan`. */
  unjudged?: { name: string; by: Judge } | undefined
  /** Share of the runs in percent, sampled. Needs `scan`. */
  share?: number | undefined
  scoreOrder?: 'lowest' | 'highest' | undefined
  /** Only ended runs, the greatest value first. */
  rankedBy?: RunRanking | undefined
}

/** `runsLookedAt`: with other filters, a page ends after scanning this many runs, however few match. */
export interface RunRanking {
  by: Exclude<RunSort, 'newest'>
  runsLookedAt: number
}

/** The filters without an index, as the API takes them. */
export interface RunScan extends Pick<RunFilterValues, RunFiltersBy<'scan' | 'trait'>> {
  runsLookedAt: number
}

/** `lookedTo`: where to continue if the page ended at a bound; otherwise continue after its last row. */
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

/** Columns that a trace needs to find its last span. */
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
  /** The trace counts as ended after this time without an event. */
  idleMs: number
}

export type RunViewRow = RowFor<RunView>

export type RunViewPatch = PatchOf<RunViewRow, 'name' | 'query' | 'lastHours' | 'columns'>

export interface AgentRow {
  id: string
  externalId: string | null
  reportedName: string
  displayName: string | null
  /** Null: the agent is not archived, or a run of it started later. */
  archivedAt: number | null
  lastRunAt: number
}

export type AgentChange = { displayName: string } | { archivedAt: number | null }

export interface AgentFilter {
  withArchived: boolean
  search?: string | undefined
}

/**
 * Traits serve searches for runs. They are lines in the run's row, one per name, because a page of runs examines many
 * rows.
 */

export const TRAIT_KINDS = ['tool', 'model', 'policy', 'prompt', 'tag', 'meta', 'loop'] as const
export type TraitKind = (typeof TRAIT_KINDS)[number]

type Traits = Record<TraitKind, string[]>

/** A name cannot break a line, because JSON escapes line breaks. A `meta` is `key=value`; a `loop` is a tool. */
export function traitLine(kind: TraitKind, name: string): string {
  return `${kind}:${JSON.stringify(name)}\n`
}

/** `name` null: any name of this kind. A `meta` without a value: any value of its key. */
export function soughtTrait(kind: TraitKind, name: string | null): string {
  if (name === null) return `\n${kind}:`
  if (kind === 'meta' && !name.includes('=')) return `\n${traitLine(kind, name).slice(0, -2)}=`
  return `\n${traitLine(kind, name)}`
}

export const NO_TRAITS = '\n'
/** Characters of a run's traits. Names beyond them are dropped. */
export const TRAITS_CHARS = 4_096
/** Limit of tags and metadata, which leaves room for tools, models and loops. */
const LABELLED_CHARS = 3_072

export function addTraits(traits: string, ofEvent: string): string {
  if (traits.includes(`\n${ofEvent}`)) return traits
  return ofEvent.split(/(?<=\n)/).reduce((all, line) => {
    if (all.includes(`\n${line}`)) return all
    // Removes the former value even if the latest has no room: no value is better than a wrong one.
    const others = line.startsWith('meta:') ? withoutKey(all, line) : all
    const most = !/^(tag|meta):/.test(line)
      ? TRAITS_CHARS
      : others === all
        ? LABELLED_CHARS
        : Math.max(LABELLED_CHARS, all.length)
    return others.length + line.length > most ? others : others + line
  }, traits)
}

/** Removes the earlier line of a key, because its latest value counts. */
function withoutKey(traits: string, line: string): string {
  const at = traits.indexOf(`\n${line.slice(0, line.indexOf('=') + 1)}`)
  return at < 0 ? traits : traits.slice(0, at) + traits.slice(traits.indexOf('\n', at + 1))
}

export function readTraits(text: string): Traits {
  const traits: Traits = { tool: [], model: [], policy: [], prompt: [], tag: [], meta: [], loop: [] }
  for (const line of text.split('\n')) {
    const kind = TRAIT_KINDS.find((one) => line.startsWith(`${one}:`))
    if (kind) traits[kind].push(JSON.parse(line.slice(kind.length + 1)) as string)
  }
  return traits
}

export function readMetadata({ meta }: Pick<Traits, 'meta'>): Record<string, string> {
  return Object.fromEntries(
    meta.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)] as const),
  )
}
