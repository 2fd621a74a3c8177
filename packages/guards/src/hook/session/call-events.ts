/** The events of calls. Each hook is a separate process; open-calls.ts stores what one hook leaves for the next. */
import type { Run, Tacho } from '@tacho/sdk'
import { digest } from '../../state.ts'
import type { AgentName } from '../agents.ts'
import { OPEN_MS, type OpenCall, type OpenCalls, type StoredCall } from './open-calls.ts'
import { subagentOf, textOf, type HookRecord, type Subagent } from '../record.ts'

interface Session {
  readonly agent: AgentName
  readonly sessionId: string
  readonly subagent?: Subagent | undefined
}

/** The run of a session. The steps of a sub-agent are a branch of it. */
export function sessionRun(
  tacho: Tacho,
  { agent, sessionId, subagent }: Session,
  usedBefore?: { toolCalls: number; labels: readonly string[] | null },
): Run {
  const names = { runId: sessionId, sessionId, agentId: agent, agentName: agent }
  const run = tacho.startRun({ ...names, usedBefore, parentSpanId: subagent?.id })
  if (subagent) run.annotate({ agent: subagent.name, subagent: subagent.name, subagentId: subagent.id })
  return run
}

/** Fields that all events of a call have. */
export function callFacts({ toolName, toolCallId, input, inputHash, approvalId }: OpenCall) {
  return {
    toolName,
    ...(toolCallId !== undefined && { toolCallId }),
    ...(input !== undefined && { input }),
    ...(inputHash !== null && { inputHash }),
    ...(approvalId !== null && { approvalId }),
  }
}

const startIdOf = ({ agent, sessionId, file }: StoredCall) => `${agent}-${digest(`start\n${sessionId}\n${file}`)}`

/** Several hooks may record the start, so its id is derived from the call. */
export function recordStart(tacho: Tacho, call: StoredCall): string {
  const { toolName: label, startedAt: at, spanId } = call
  const eventId = startIdOf(call)
  sessionRun(tacho, call).record({ type: 'TOOL_START', label, payload: callFacts(call), at, spanId, eventId })
  return eventId
}

/**
 * Records starts in all sessions, because the program of another session may have died. While the agent of this session
 * asks its user, its calls wait.
 */
export function recordStarts(tacho: Tacho, calls: OpenCalls, { event, fields, sessionId }: HookRecord): void {
  const isAsking = event === 'PermissionRequest' || fields['notification_type'] === 'permission_prompt'
  for (const call of calls.in(['judged'])) {
    if (isAsking && call.sessionId === sessionId) continue
    recordStart(tacho, call)
    calls.move(call, 'started')
  }
}

/** Closes the calls that end with this step: no hook follows them, or only a late one. */
export async function closeCalls(
  tacho: Tacho,
  calls: OpenCalls,
  record: HookRecord,
  now: number,
): Promise<StoredCall[]> {
  const isEnded = endedBy(record)
  const open = calls.in(['judged', 'started'], record.event === 'SessionStart' ? undefined : record.sessionId)
  const closed = open.filter(
    (call) =>
      (isEnded !== null && call.sessionId === record.sessionId && isEnded(call)) || now - call.startedAt > OPEN_MS,
  )
  // Codex and our modules report an interrupted step as `Interrupt`. Other agents report nothing.
  const outcome = record.event === 'Interrupt' ? 'cancelled' : 'did_not_report'
  const declined = closed.length > 0 ? await declinedBy(record, closed) : null
  for (const call of closed) {
    const answer = declined?.get(call.toolCallId ?? '')
    if (answer !== undefined && call.state === 'judged') {
      recordDeclined(tacho, call, answer)
      calls.move(call, 'closed')
      continue
    }
    const startEventId = recordStart(tacho, call)
    const payload = { ...callFacts(call), startEventId, outcome: answer === undefined ? outcome : 'cancelled' }
    const eventId = `${startEventId}-closed`
    sessionRun(tacho, call).record({ type: 'TOOL_CALL', label: call.toolName, payload, spanId: call.spanId, eventId })
    calls.move(call, 'closed')
  }
  return closed
}

/** Calls that the agent's user declined, according to the session file. */
async function declinedBy({ fields }: HookRecord, closed: readonly StoredCall[]): Promise<ReadonlyMap<string, string>> {
  const file = textOf(fields['transcript_path'])
  const { declinedCalls } = await import('./session-files.ts')
  return closed[0] && file !== undefined ? declinedCalls(closed[0].agent, file) : new Map()
}

function recordDeclined(tacho: Tacho, call: StoredCall, message: string): void {
  const { toolName: label, toolCallId, input, spanId } = call
  const facts = { toolName: label, ...(toolCallId !== undefined && { toolCallId }) }
  const payload = { ...facts, outcome: 'never_ran', reasonCode: 'declined', arguments: JSON.stringify(input) }
  const eventId = `${startIdOf(call)}-closed`
  const event = { type: 'TOOL_CALL', label, payload: { ...payload, error: { message } }, spanId, eventId }
  sessionRun(tacho, call).record(event)
}

/** A background sub-agent continues while its user writes the next prompt. */
function endedBy(record: HookRecord): ((call: StoredCall) => boolean) | null {
  const { event, fields } = record
  switch (event) {
    case 'UserPromptSubmit':
      // Qwen Code calls this hook after each tool too, without a prompt.
      return fields['prompt'] === '' ? null : ({ subagent }) => subagent === undefined
    case 'Interrupt':
      return ({ subagent }) => subagent === undefined
    case 'SubagentStop':
      return ({ subagent }) => subagent !== undefined && subagent.id === subagentOf(record)?.id
    case 'SessionStart':
      return textOf(fields['source']) === 'compact' ? null : () => true
    case 'SessionEnd':
      return () => true
    default:
      return null
  }
}
