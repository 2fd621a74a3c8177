/** A recorded tool call, as the policies of its client saw it. Source: decision "Payload conventions" in docs/decisions. */
import type { Facts } from '@tacho/policy/variables.ts'
import type { ToolCallRow } from '../storage/simulations.ts'
import { isUuid } from '../storage/uuid.ts'

export interface RecordedCall {
  toolName: string
  /** Undefined where it was not recorded, as in metadata-only mode. */
  input: unknown
  riskSignals: string[]
  /** The approval that was asked for it; lower case. */
  approvalId: string | null
}

/** What the run had used before the call. */
export interface RunUsage {
  cost: number
  totalTokens: number
  toolCalls: number
}

export function recordedCall(payload: string): RecordedCall {
  const said = JSON.parse(payload) as Record<string, unknown>
  const { toolName, input, riskSignals, approvalId } = said
  return {
    toolName: typeof toolName === 'string' ? toolName : '',
    input: input ?? undefined,
    riskSignals: Array.isArray(riskSignals) ? riskSignals.filter((each) => typeof each === 'string') : [],
    approvalId: typeof approvalId === 'string' && isUuid(approvalId) ? approvalId.toLowerCase() : null,
  }
}

/** `now` is the time of the call: what its client decided by. */
export function factsOf(row: ToolCallRow, call: RecordedCall, usage: RunUsage): Facts {
  return {
    // An input that is no object is a fact of the wrong type: conditions that need it fail, as they do at the client.
    tool: { name: call.toolName, input: call.input as Record<string, unknown> | undefined },
    agent: { id: row.agentId, name: row.agentName },
    run: { id: row.runId, ...usage },
    session: { id: row.sessionId },
    risk: { signals: call.riskSignals },
    now: row.time,
  }
}
