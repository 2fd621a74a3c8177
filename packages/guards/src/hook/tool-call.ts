/** The tool call that a hook judges, and what the hook stores for later hooks. */
import { hashOf } from '../refusals.ts'
import { stateRoot } from '../state.ts'
import { signalsOf, type AgentName } from './agents.ts'
import { openJudgedCalls } from './session/judged-calls.ts'
import { openLastDecisions, type LastDecision } from './session/last-decisions.ts'
import { openCalls, type OpenCall } from './session/open-calls.ts'
import { subagentOf, textOf, type HookRecord } from './record.ts'
import { cwdOf } from './session/session-files.ts'
import { projectOf, WRITES_OUTSIDE, writesOutside, type Place } from './written-paths.ts'

export interface ToolCall {
  readonly toolName: string
  readonly input: unknown
  readonly riskSignals: readonly string[]
  readonly toolCallId?: string | undefined
}

export function toolCallIn(agent: AgentName, { fields, toolCallId }: HookRecord, place: Place): ToolCall {
  const toolName = textOf(fields['tool_name']) ?? ''
  const input = fields['tool_input'] ?? {}
  const riskSignals = signalsOf(agent, toolName)
  if (writesOutside(agent, toolName, input, place)) riskSignals.push(WRITES_OUTSIDE)
  return { toolName, input, riskSignals, toolCallId }
}

/** The folders in which the session works and in which it began. A model can change only the first. */
export function placeOf({ fields }: HookRecord): Place {
  const cwd = textOf(fields['cwd']) || process.cwd()
  return { cwd, start: cwdOf(textOf(fields['transcript_path']) ?? '') ?? cwd }
}

export interface Judged {
  readonly agent: AgentName
  readonly place: Place
  readonly outcome: LastDecision['outcome']
  readonly facts: Pick<OpenCall, 'inputHash' | 'approvalId' | 'isRefused'>
}

/** Call it only after the decision: if the agent stops the hook earlier, the tool runs unjudged. */
export function noteJudged(directory: string, record: HookRecord, { agent, place, outcome, facts }: Judged): void {
  const at = Date.now()
  const { sessionId, fields, callId, toolCallId } = record
  const toolName = textOf(fields['tool_name']) ?? ''
  const call = { startedAt: at, agent, sessionId, subagent: subagentOf(record), toolName, toolCallId }
  const input = fields['tool_input'] ?? {}
  openCalls(directory).put(record, { ...call, input, plainHash: hashOf(toolName, input), ...facts })
  openJudgedCalls(stateRoot()).add(sessionId, [callId])
  openLastDecisions(directory).put(projectOf(place.start), { at, agent, toolName, outcome })
}
