/** Policies tried on recorded tool calls, and what a trial reads. */
import type { SimulationResult, SimulationStatus } from '@tacho/contract/operator/simulation.ts'
import type { PolicyAction, Severity } from '@tacho/contract/runtime-config.ts'
import type { AuditEntry } from './audit.ts'
import type { PageById } from './page.ts'

export interface SimulationStore {
  /** Queued as work in the same transaction; the oldest that have ended go beyond `bounds.kept`. */
  createSimulation(
    simulation: NewSimulationRow,
    bounds: { waiting: number; kept: number },
    audit: AuditEntry[],
  ): Promise<'created' | 'too_many'>
  findSimulation(environmentId: string, id: string): Promise<SimulationRow | null>
  /** The newest first; `after` is the id of the last row of the page before. */
  listSimulations(environmentId: string, page: PageById): Promise<SimulationRow[]>
  /** Null: there is no such simulation. One that has ended stays as it is, and nothing is audited. */
  cancelSimulation(environmentId: string, id: string, now: number, audit: AuditEntry[]): Promise<SimulationRow | null>
  /** Tells how far it is; false when it has been cancelled meanwhile or has ended. */
  reportSimulation(environmentId: string, id: string, progress: SimulationProgress): Promise<boolean>
  /** Ends it, unless it has ended already: the first end counts. */
  endSimulation(environmentId: string, id: string, end: SimulationEnd): Promise<void>
  /** Recorded tool calls with `from <= time < to`. */
  countToolCalls(environmentId: string, from: number, to: number): Promise<number>
  /** By time; ends at `limit` rows or `pageBytes` of payload, with at least one row. */
  listToolCalls(environmentId: string, page: ToolCallPage): Promise<ToolCallRow[]>
  /** Model and tool calls of a run in timeline order, after one place and before another. */
  listRunSteps(environmentId: string, run: string, page: RunStepPage): Promise<RunStepRow[]>
}

export interface NewSimulationRow {
  id: string
  environmentId: string
  condition: string
  severity: Severity
  action: PolicyAction
  days: number
  createdAt: number
  createdBy: string
}

export interface SimulationRow extends NewSimulationRow {
  status: SimulationStatus
  endedAt: number | null
  scanned: number
  total: number | null
  error: string | null
  result: SimulationResult | null
}

export interface SimulationProgress {
  scanned: number
  total: number | null
}

export type SimulationEnd = { at: number } & (
  | { status: 'DONE'; scanned: number; result: SimulationResult }
  | { status: 'FAILED'; error: string }
)

/** A place among the tool calls of an environment; `seq` alone is not unique over runs on every engine. */
export interface CallPlace {
  time: number
  run: string
  seq: number
}

export interface ToolCallPage {
  from: number
  to: number
  limit: number
  pageBytes: number
  after: CallPlace | null
}

export interface ToolCallRow extends CallPlace {
  /** External id of the run; `run` is the internal one. */
  runId: string
  eventId: string
  sessionId: string | null
  agentId: string | null
  agentName: string
  /** JSON text as sent. */
  payload: string
}

export interface RunStepPage {
  limit: number
  pageBytes: number
  after: { time: number; seq: number } | null
  before: { time: number; seq: number }
}

/** `payload` only of an LLM_CALL; null for a TOOL_CALL. */
export interface RunStepRow {
  time: number
  seq: number
  payload: string | null
}
