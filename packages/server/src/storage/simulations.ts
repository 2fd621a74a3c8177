/** Simulations of policies on recorded tool calls, and the data they read. */
import type { SimulationResult, SimulationStatus } from '@tacho/contract/operator/simulation.ts'
import type { PolicyAction, Severity } from '@tacho/contract/runtime-config.ts'
import type { AuditEntry } from './audit.ts'
import type { Page, PageById } from './page.ts'

export interface SimulationStore {
  /** Queued as work in the same transaction. Deletes the oldest ended ones beyond `bounds.kept`. */
  createSimulation(
    simulation: NewSimulationRow,
    bounds: { waiting: number; kept: number },
    audit: AuditEntry[],
  ): Promise<'created' | 'too_many'>
  findSimulation(environmentId: string, id: string): Promise<SimulationRow | null>
  /** Newest first; `after` is the last id of the previous page. */
  listSimulations(environmentId: string, page: PageById): Promise<Page<SimulationRow>>
  /** Null: no such simulation. An ended simulation stays unchanged, and nothing is audited. */
  cancelSimulation(environmentId: string, id: string, now: number, audit: AuditEntry[]): Promise<SimulationRow | null>
  /** Stores the progress. False if it was cancelled or has ended. */
  reportSimulation(environmentId: string, id: string, progress: SimulationProgress): Promise<boolean>
  /** Ends it, unless it has already ended: the first end counts. */
  endSimulation(environmentId: string, id: string, end: SimulationEnd): Promise<void>
  /** Recorded tool calls with `from <= time < to`. */
  countToolCalls(environmentId: string, from: number, to: number): Promise<number>
  /** By time. Ends at `limit` rows or `pageBytes` of payload, with at least one row. */
  listToolCalls(environmentId: string, page: ToolCallPage): Promise<ToolCallRow[]>
  /** Model and tool calls of a run in timeline order, between two places. */
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

/** A place among the tool calls of an environment. `seq` alone is not unique across runs on every engine. */
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

/** `payload` only for an LLM_CALL; null for a TOOL_CALL. */
export interface RunStepRow {
  time: number
  seq: number
  payload: string | null
}
