import type { Simulation, SimulationResult } from '@tacho/contract/policies/simulation.ts'
import type { EventPage, NewEvent, TimelinePlace } from '../record/events.ts'
import type { PageAfter } from '../engine/page.ts'
import type { RowFor } from '../engine/row-for.ts'

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

/** TOOL_CALL events, or the decisions that held a call back or blocked it. */
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
    Pick<NewEvent, 'runId' | 'eventId' | 'spanId' | 'sessionId' | 'agentId' | 'agentName' | 'payload'> {}

export interface RunStepPage extends EventPage {
  before: TimelinePlace
}

/** `payload` only for an LLM_CALL; null for a TOOL_CALL. */
export interface RunStepRow extends TimelinePlace {
  payload: string | null
}
