/** Tool calls as the client's policies saw them. Source: docs/decisions/0004-payloads-are-kept-as-text.md. */
import { textAt } from '@tacho/contract/record/payload-reader.ts'
import type { Facts } from '@tacho/policy/variables.ts'
import type { ToolCallRow } from '../../storage/policies/simulations.ts'
import { isUuid } from '../../storage/engine/uuid.ts'

export interface RunUsage {
  cost: number
  totalTokens: number
  toolCalls: number
}

export type RecordedCall = ReturnType<typeof recordedCall>

export function recordedCall(payload: string) {
  const said = JSON.parse(payload) as Record<string, unknown>
  const { input, riskSignals, annotations } = said
  const approvalId = textAt(said, 'approvalId')
  return {
    toolName: textAt(said, 'toolName') ?? '',
    server: textAt(said, 'toolServer'),
    toolCallId: textAt(said, 'toolCallId'),
    inputHash: textAt(said, 'inputHash'),
    action: textAt(said, 'action'),
    outcome: textAt(said, 'outcome'),
    input: input ?? undefined,
    riskSignals: Array.isArray(riskSignals) ? riskSignals.filter((each) => typeof each === 'string') : [],
    annotations: typeof annotations === 'object' && annotations !== null ? { ...annotations } : undefined,
    approvalId: approvalId !== null && isUuid(approvalId) ? approvalId.toLowerCase() : null,
  }
}

/** `now` is the time of the call, because the client decided by it. */
export function factsOf(row: ToolCallRow, call: RecordedCall, usage: RunUsage): Facts {
  return {
    // An input that is not an object has the wrong type: conditions that use it fail, as they do in the client.
    tool: {
      name: call.toolName,
      server: call.server,
      input: call.input as Record<string, unknown> | undefined,
      annotations: call.annotations,
    },
    agent: { id: row.agentId, name: row.agentName },
    run: { id: row.runId, ...usage },
    session: { id: row.sessionId },
    risk: { signals: call.riskSignals },
    now: row.time,
  }
}
