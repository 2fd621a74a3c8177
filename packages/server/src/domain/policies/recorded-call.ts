/** Reads tool calls as the client's policies saw them. Source: docs/decisions/0004-payloads-are-kept-as-text.md. */
import { textAt } from '@tacho/contract/record/payload-reader.ts'
import { labelsOfCall, type ToolLabels } from '@tacho/policy/history/tool-labels.ts'
import type { Facts } from '@tacho/policy/language/variables.ts'
import type { ToolCallRow, RunStepRow } from '../../storage/policies/policies.ts'
import { isUuid } from '../../storage/engine/uuid.ts'
import { toUsage, usageOf } from '../record/usage.ts'

interface RunUsage {
  cost: number
  totalTokens: number
  toolCalls: number
}

export type RecordedCall = ReturnType<typeof recordedCall>

export function recordedCall(payload: string) {
  const parsedPayload = JSON.parse(payload) as Record<string, unknown>
  const { input, riskSignals, annotations } = parsedPayload
  const approvalId = textAt(parsedPayload, 'approvalId')
  return {
    toolName: textAt(parsedPayload, 'toolName') ?? '',
    server: textAt(parsedPayload, 'toolServer'),
    toolCallId: textAt(parsedPayload, 'toolCallId'),
    inputHash: textAt(parsedPayload, 'inputHash'),
    action: textAt(parsedPayload, 'action'),
    outcome: textAt(parsedPayload, 'outcome'),
    input: input ?? undefined,
    riskSignals: Array.isArray(riskSignals) ? riskSignals.filter((each) => typeof each === 'string') : [],
    annotations: typeof annotations === 'object' && annotations !== null ? { ...annotations } : undefined,
    approvalId: approvalId !== null && isUuid(approvalId) ? approvalId.toLowerCase() : null,
  }
}

/** `now` is the time of the call, because that was the client's time when it decided. */
export function factsOf(row: ToolCallRow, call: RecordedCall, usage: RunUsage, rules: readonly ToolLabels[]): Facts {
  const tool = { name: call.toolName, server: call.server, input: call.input as Record<string, unknown> | undefined }
  const labels = rules.length === 0 ? [] : labelsOfCall(rules, { tool, now: row.time }).does
  return {
    // An input that is not an object is passed as it is: conditions that use it fail, as they do in the client.
    tool: { ...tool, annotations: call.annotations, labels },
    agent: { id: row.agentId, name: row.agentName },
    run: { id: row.runId, ...usage },
    session: { id: row.sessionId },
    risk: { signals: call.riskSignals },
    now: row.time,
  }
}

type Place = Pick<RunStepRow, 'time' | 'seq'>

interface Step extends Place {
  costNanos: number | null
  totalTokens: number | null
}

interface Followed {
  costNanos: number
  totalTokens: number
  toolCalls: number
  ahead: Step[]
}

export function runUsages() {
  const runs = new Map<string, Followed>()

  function followed(run: string): Followed {
    let knownRun = runs.get(run)
    if (knownRun === undefined) {
      knownRun = { costNanos: 0, totalTokens: 0, toolCalls: 0, ahead: [] }
      runs.set(run, knownRun)
    }
    return knownRun
  }

  return {
    add(run: string, steps: RunStepRow[]): void {
      followed(run).ahead.push(...steps.map(toStep))
    },
    forget(ended: string[]): void {
      for (const run of ended) runs.delete(run)
    },
    /** Call this with positions of a run in timeline order. */
    before(run: string, place: Place): RunUsage {
      const usage = followed(run)
      const behind = usage.ahead.findIndex((step) => !isBefore(step, place))
      for (const step of usage.ahead.splice(0, behind === -1 ? usage.ahead.length : behind)) {
        usage.costNanos = saturating(usage.costNanos + (step.costNanos ?? 0))
        usage.totalTokens = saturating(usage.totalTokens + (step.totalTokens ?? 0))
        if (step.totalTokens === null) usage.toolCalls += 1
      }
      const { cost } = toUsage({ promptTokens: 0, completionTokens: 0, ...usage })
      return { cost, totalTokens: usage.totalTokens, toolCalls: usage.toolCalls }
    },
  }
}

function toStep({ time, seq, payload }: RunStepRow): Step {
  if (payload === null) return { time, seq, costNanos: null, totalTokens: null }
  const usage = usageOf('LLM_CALL', JSON.parse(payload) as Record<string, unknown>)
  return { time, seq, costNanos: usage?.costNanos ?? 0, totalTokens: usage?.totalTokens ?? 0 }
}

function isBefore(one: Place, other: Place): boolean {
  return one.time < other.time || (one.time === other.time && one.seq < other.seq)
}

function saturating(sum: number): number {
  return Math.min(sum, Number.MAX_SAFE_INTEGER)
}
