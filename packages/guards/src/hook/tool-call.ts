/** A call of a tool, as the hook before it judges it, and what this hook leaves for the next ones. */
import { stateRoot } from '../state.ts'
import { signalsOf, type AgentName } from './agents.ts'
import { openJudgedCalls } from './judged-calls.ts'
import { openLastDecisions, type LastDecision } from './last-decisions.ts'
import { openPendingCalls, type PendingCall } from './pending-calls.ts'
import { textOf, type HookRecord } from './record.ts'
import { cwdOf } from './session-files.ts'
import { projectOf, WRITES_OUTSIDE, writesOutside, type Place } from './written-paths.ts'

export interface ToolCall {
  readonly toolName: string
  readonly input: unknown
  readonly riskSignals: readonly string[]
}

export function toolCallIn(agent: AgentName, { fields }: HookRecord, place: Place): ToolCall {
  const toolName = textOf(fields['tool_name']) ?? ''
  const input = fields['tool_input'] ?? {}
  const riskSignals = signalsOf(agent, toolName)
  if (writesOutside(agent, toolName, input, place)) riskSignals.push(WRITES_OUTSIDE)
  return { toolName, input, riskSignals }
}

/** Where the session works, and where it began: a model can change only the first. */
export function placeOf({ fields }: HookRecord): Place {
  const cwd = textOf(fields['cwd']) || process.cwd()
  return { cwd, start: cwdOf(textOf(fields['transcript_path']) ?? '') ?? cwd }
}

/** Names the call for the hook after it. */
export function callIdIn({ sessionId, fields }: HookRecord): string | null {
  const id = textOf(fields['tool_use_id'])
  return id === undefined ? null : `${sessionId}\n${id}`
}

export interface Judged {
  readonly agent: AgentName
  readonly place: Place
  readonly outcome: LastDecision['outcome']
  readonly pending: Omit<PendingCall, 'startedAt'>
}

/** Only after the decision: an agent runs the tool if it stops the hook in between. */
export function noteJudged(directory: string, record: HookRecord, { agent, place, outcome, pending }: Judged): void {
  const at = Date.now()
  const { sessionId, fields } = record
  const id = callIdIn(record)
  if (id !== null) openPendingCalls(directory).put(id, { startedAt: at, ...pending })
  const toolCallId = textOf(fields['tool_use_id'])
  if (toolCallId !== undefined) openJudgedCalls(stateRoot()).add(sessionId, [toolCallId])
  const toolName = textOf(fields['tool_name']) ?? ''
  openLastDecisions(directory).put(projectOf(place.start), { at, agent, toolName, outcome })
}
