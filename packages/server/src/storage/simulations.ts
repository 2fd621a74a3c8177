import type { SimulationResult, SimulationStatus } from '@tacho/contract/operator/simulation.ts'
import type { PolicyAction, Severity } from '@tacho/contract/runtime-config.ts'

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

/** `seq` alone is not unique across runs on every engine. */
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
  runId: string
  eventId: string
  sessionId: string | null
  agentId: string | null
  agentName: string
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
