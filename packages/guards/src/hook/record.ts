/** The record that a coding agent passes to a hook, and the event that the hook makes of it. */
import { statSync } from 'node:fs'
import { hashOf } from '../refusals.ts'
import { digest } from '../state.ts'
import { AGENTS, type AgentName } from './agents.ts'

/** The fields as Claude Code names them. */
export interface HookRecord {
  readonly sessionId: string
  readonly event: string
  /** The same record has the same id in every process. */
  readonly eventId: string
  /**
   * Identifies a call within the session: the model's id, or a hash of the tool and its input. Empty if the record is
   * not about a call.
   */
  readonly callId: string
  /** The model's id of the call. */
  readonly toolCallId?: string | undefined
  readonly fields: Readonly<Record<string, unknown>>
}

export interface HookEvent {
  readonly type: string
  readonly label: string
  readonly payload: Readonly<Record<string, unknown>>
}

/** Other spellings of PreToolUse, and names that it could get: "preToolUse", "before_tool_call". */
const BEFORE_TOOL = /^\W*(pre|before)[\W_]*tool/i

/**
 * Null if the text is not a hook record, or precedes a tool call that cannot be decided.
 * @param step the agent's name of the step, if its records do not contain it.
 */
export function readRecord(agent: AgentName, text: string, step?: string): HookRecord | null {
  const recordFields = objectOf(text)
  if (!recordFields) return null
  const form = AGENTS[agent]
  const fields: Record<string, unknown> = { ...recordFields }
  for (const [theirs, ours] of Object.entries(form.fields)) fields[ours] ??= recordFields[theirs]
  const sessionId = textOf(fields['session_id'])
  const named = textOf(step ?? fields['hook_event_name'])
  if (sessionId === undefined || sessionId === '' || named === undefined) return null
  const event = (Object.hasOwn(form.events, named) && form.events[named]) || named
  const [ofStep, ...inputNames] = (form.tools && Object.hasOwn(form.tools, named) && form.tools[named]) || []
  if (ofStep !== undefined && inputNames.every((name) => typeof recordFields[name] === 'string')) {
    fields['tool_name'] = ofStep
    fields['tool_input'] = Object.fromEntries(inputNames.map((name) => [name, recordFields[name]]))
  }
  const toolName = textOf(fields['tool_name'])
  if (BEFORE_TOOL.test(event) && (event !== 'PreToolUse' || !toolName)) return null
  const isUnique = ['tool_use_id', 'prompt_id', 'turn_id', 'turn-id'].some((name) => typeof fields[name] === 'string')
  if (toolName) {
    // Older versions of Copilot send the input as a text.
    fields['tool_input'] = objectOf(fields['tool_input']) ?? fields['tool_input']
  }
  const toolCallId = form.hasNoCallIds ? undefined : textOf(fields['tool_use_id']) || undefined
  const callId = toolCallId ?? (toolName ? callIdOf(toolName, fields['tool_input']) : '')
  // A user can send the same prompt twice. The size of the transcript tells them apart.
  const place = isUnique ? '' : sizeOf(fields['transcript_path'])
  const eventId = `${agent}-${digest(`${sessionId}\n${event}\n${place}\n${text.trim()}`)}`
  return { sessionId, event, eventId, callId, toolCallId, fields }
}

/** The id of a call without one from its agent: a hash of the tool and its input. */
export function callIdOf(toolName: string, input: unknown): string {
  return hashOf(toolName, input ?? {}) ?? toolName
}

/** The event of a record; null if the record has another event or none. */
export function eventOf({ event, fields }: HookRecord): HookEvent | null {
  const tool = textOf(fields['tool_name']) ?? 'tool'
  switch (event) {
    case 'PreToolUse':
    case 'PostToolUse':
    case 'PostToolUseFailure':
      return null
    case 'SessionStart':
      return step(`session ${textOf(fields['source']) ?? 'startup'}`, { model: fields['model'], cwd: fields['cwd'] })
    case 'SessionEnd':
      return {
        type: 'SESSION_OUTCOME',
        label: 'session end',
        payload: { status: 'COMPLETED', reason: fields['reason'] },
      }
    case 'UserPromptSubmit':
      // Qwen Code calls this hook after each tool too, without a prompt.
      if (fields['prompt'] === '') return null
      return { type: 'USER_INPUT', label: 'user prompt', payload: { text: fields['prompt'] } }
    case 'Stop':
      return step('answer', { text: fields['last_assistant_message'] })
    case 'agent-turn-complete':
      return step('answer', { text: fields['last-assistant-message'], messages: fields['input-messages'] })
    case 'SubagentStart':
    case 'SubagentStop': {
      const label = `${event === 'SubagentStart' ? 'start' : 'end'} of ${textOf(fields['agent_type']) ?? 'subagent'}`
      return step(label, { text: fields['last_assistant_message'] })
    }
    case 'Notification':
      return step('notification', { text: fields['message'], kind: fields['notification_type'] })
    case 'PermissionRequest':
      return step(`permission for ${tool}`, { toolName: tool, input: fields['tool_input'] })
    default:
      return step(event, {})
  }
}

/** The outcome of a call whose end the agent reported. */
export function endOf({ event, fields }: HookRecord): 'returned' | 'failed' | 'cancelled' {
  const { interrupted } = (fields['tool_response'] ?? {}) as { interrupted?: unknown }
  if (fields['is_interrupt'] === true || interrupted === true) return 'cancelled'
  return event === 'PostToolUseFailure' ? 'failed' : 'returned'
}

/** The payload of TOOL_CALL, without the facts that only the hook before the call knows. */
export function toolCallOf(record: HookRecord): Readonly<Record<string, unknown>> & { toolName: string } {
  const { event, fields, toolCallId } = record
  const isFailure = event === 'PostToolUseFailure'
  return {
    toolName: textOf(fields['tool_name']) ?? '',
    ...(toolCallId !== undefined && { toolCallId }),
    outcome: endOf(record),
    input: fields['tool_input'] ?? {},
    ...(isFailure ? { error: fields['error'] ?? 'failed' } : { output: fields['tool_response'] ?? null }),
    ...(typeof fields['duration_ms'] === 'number' && { latency: fields['duration_ms'] }),
  }
}

/** Matches `Exit code 3` and `Command failed with exit code 1`, in the first line. */
const EXIT_CODE = /^[^\n]{0,60}?\bexit(?:ed)?\b[^\n\d]{0,30}(\d{1,3})\b/i

/** The exit code of a failed command. Null: it failed otherwise. */
export function exitCodeOf({ fields }: HookRecord): number | null {
  return Number(EXIT_CODE.exec(textOf(fields['error']) ?? '')?.[1] ?? 0) || null
}

export interface Subagent {
  readonly id: string
  readonly name: string
}

/** The sub-agent that sent this record; undefined for the agent itself, which may have a type too. */
export function subagentOf({ fields }: HookRecord): Subagent | undefined {
  const id = textOf(fields['agent_id'])
  return id === undefined ? undefined : { id, name: textOf(fields['agent_type']) || 'sub-agent' }
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function step(label: string, payload: Readonly<Record<string, unknown>>): HookEvent {
  return { type: 'AGENT_STEP', label, payload }
}

function objectOf(text: unknown): Record<string, unknown> | null {
  try {
    const value: unknown = typeof text === 'string' ? JSON.parse(text) : null
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}

function sizeOf(file: unknown): string {
  try {
    return typeof file === 'string' ? String(statSync(file).size) : ''
  } catch {
    return ''
  }
}
