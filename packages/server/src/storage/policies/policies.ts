/** A version never changes; deployments.ts stores which one is deployed. */
import { hash } from 'node:crypto'
import type { PolicyAction, Severity } from '@tacho/contract/policies/runtime-config.ts'
import type { GrantRule, OnError } from '@tacho/contract/engine/words.ts'
import type { PromptResult } from '@tacho/contract/policies/prompt.ts'
import type { Simulation, SimulationResult } from '@tacho/contract/policies/simulation.ts'
import type { RowOf } from '../engine/tables.ts'
import type { PageAfter, RowFor } from '../engine/page.ts'
import type { RunRow } from '../runs/runs.ts'
import type { ScoreSumRow } from '../runs/scores.ts'
import type { LatencyRow, UsageSums, UncostedSum } from '../runs/usage.ts'
import type { EventPage, NewEvent, StoredEvent, TimelinePlace } from '../record/events.ts'
import type { Stop } from '@tacho/contract/policies/stop.ts'

export interface PolicyVersionRow extends RowOf<'policy_versions'> {
  severity: Severity
  action: PolicyAction
  onError: OnError | null
  grants: GrantRule | null
  /** The row is damaged, so it has no text. */
  damaged?: true
}

export type NewPolicyVersionRow = Omit<PolicyVersionRow, 'policyId' | 'number' | 'importedAt' | 'damaged'>

export interface PolicyRow extends Omit<RowOf<'policies'>, 'newest'> {
  workspaceId: string
  newest: PolicyVersionRow
}

export type NewPolicyRow = Omit<PolicyRow, 'archivedAt' | 'newest'>

export interface PromptRow extends Omit<RowOf<'prompts'>, 'newest'> {
  workspaceId: string
  newest: PromptVersionInfo
}

export type NewPromptRow = Omit<PromptRow, 'archivedAt' | 'newest'>
export type PromptVersionRow = RowOf<'prompt_versions'> & {
  /** The row is damaged, so it has no content. */
  damaged?: true
}
export type PromptVersionInfo = Omit<PromptVersionRow, 'content'>
export type NewPromptVersionRow = Pick<PromptVersionRow, 'id' | 'content' | 'author' | 'note' | 'createdAt'>

export function measureContent(content: string): Pick<PromptVersionInfo, 'contentHash' | 'contentBytes'> {
  return { contentHash: hash('sha256', content), contentBytes: Buffer.byteLength(content) }
}

/** `unchanged`: the newest version has the same content. `conflict`: the author has not seen the newest version. */
export type SavedVersion<Version> = { outcome: 'created' | 'unchanged' | 'conflict'; version: Version }

export type VersionPage = PageAfter<number>

type Counted = 'runs' | 'completed' | 'failed' | 'cancelled' | 'events' | 'errors' | 'blocked' | 'approvals'

/** Some of the version's runs, with the usage of their events that name the version. */
export interface VersionRunGroup {
  runs: number
  totalTokens: number
  costNanos: number
  uncosted: UncostedSum[]
}

export interface VersionResultRow extends UsageSums, Pick<PromptResult, Counted> {
  /** Uncosted usage, to be priced at the day on which each run started. */
  uncosted: UncostedSum[]
  /** Groups of all runs of the version. Within a group, figures are known for all runs or for none. */
  groups: VersionRunGroup[]
  /** Starts of its first and its last run, at their first event with this version. */
  firstAt: number
  lastAt: number
  /** Length of ended runs, in milliseconds; null: no run has ended. */
  lengthP50: number | null
  lengthP95: number | null
  llm: LatencyRow | null
  tool: LatencyRow | null
  scores: ScoreSumRow[]
}

export type SimulationRow = RowFor<Simulation>
export type NewSimulationRow = Omit<SimulationRow, 'status' | 'endedAt' | 'scanned' | 'total' | 'error' | 'result'>
export type SimulationProgress = Pick<SimulationRow, 'scanned' | 'total'>

export type SimulationEnd = { at: number } & (
  | { status: 'DONE'; scanned: number; result: SimulationResult }
  | { status: 'FAILED'; error: string }
)

/** `seq` alone is not unique across runs on every engine. */
export interface CallPlace {
  time: number
  run: string
  seq: number
}

/** `ran`: TOOL_CALL events. `held`: decisions that held a call back or blocked it. */
export type CallKind = 'ran' | 'held'

export interface ToolCallPage extends PageAfter<CallPlace> {
  kind: CallKind
  from: number
  to: number
  pageBytes: number
}

export interface ToolCallRow
  extends
    CallPlace,
    Pick<StoredEvent, 'eventId' | 'spanId' | 'sessionId' | 'agentId' | 'agentName' | 'payload'>,
    Pick<NewEvent, 'runId'> {}

/** A run with calls to simulate. */
export interface CallingRun {
  run: string
  calls: number
}

/** A past step of a run. `isHeld`: the decision held the call back or blocked it. */
export interface PastRow extends ToolCallRow {
  eventType: string
  isHeld: boolean
  payloadDamaged?: true
}

/** A decision, or the start of a call. */
export interface DecisionRow extends ToolCallRow, Pick<NewEvent, 'clientId'> {
  eventType: string
  payloadDamaged?: true
}

export interface DecidedRun {
  run: RunRow
  events: DecisionRow[]
}

export interface RunStepPage extends EventPage {
  before: TimelinePlace
}

/** `payload`: of an LLM_CALL; null for a TOOL_CALL. */
export interface RunStepRow extends TimelinePlace {
  payload: string | null
}

export interface StopRow extends RowFor<Omit<Stop, 'isKnown'>> {
  environmentId: string
  /** Names that clients may report for the target. */
  names: string[]
  stopperKind: 'operator' | 'token'
  stopperId: string
}

export type NewStop = Pick<
  StopRow,
  'environmentId' | 'id' | 'scope' | 'target' | 'reason' | 'stoppedAt' | 'stopperKind' | 'stopperId' | 'stoppedBy'
>

export type StopMade =
  | { outcome: 'stopped' | 'existing'; stop: StopRow; isKnown: boolean }
  | { outcome: 'too_many' }
  | { outcome: 'too_many_names' }
  | { outcome: 'no_environment' }

/** `run`: the external id of a run. Lists the stops that apply to it, also those that have ended. */
export interface StopFilter {
  inEffect: boolean
  run?: string | undefined
}

export type StopPage = PageAfter<{ id: string }>

/** The call or approval request that a stop may cover. */
export interface StopSubject {
  runId: string | null
  sessionIds: readonly (string | null)[]
  /** Ids and names of its agents. */
  agents: readonly (string | null)[]
}

export function isStopped({ scope, names }: Pick<StopRow, 'scope' | 'names'>, subject: StopSubject): boolean {
  const { runId, sessionIds, agents } = subject
  if (scope === 'environment') return true
  const reported = { run: [runId], session: sessionIds, agent: agents }[scope]
  return reported.some((name) => name !== null && names.includes(name))
}

/** Maximum length of a condition. A client that cannot compile a condition would block every call. */
export const CONDITION_CHARS = 4_096

export function stopCondition({ scope, names }: Pick<StopRow, 'scope' | 'names'>): string {
  const list = JSON.stringify(names)
  switch (scope) {
    case 'environment':
      return 'true'
    case 'agent':
      return `agent.id in ${list} || agent.name in ${list}`
    case 'session':
    case 'run':
      return `${scope}.id in ${list}`
  }
}
