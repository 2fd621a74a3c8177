/** Finds payload fields that the view of an event does not show. Pure. */
import type { KnownEventType } from '@tacho/contract/engine/words.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'

/** Fields that describe a failure. */
const FAILURE = ['error', 'exception']
const CALL = ['toolName', 'toolCallId', 'input', 'output', 'latency', 'outcome', 'reasonCode', 'arguments', ...FAILURE]

const SEEN_OF: Record<KnownEventType, readonly string[]> = {
  USER_INPUT: ['text', 'content'],
  AGENT_STEP: ['text', 'content', 'input', ...FAILURE],
  LLM_CALL: [
    'messages',
    'output',
    'model',
    'requestModel',
    'usage',
    'latency',
    'cost',
    'finishReason',
    'toolCalls',
    ...FAILURE,
  ],
  TOOL_START: CALL,
  TOOL_CALL: CALL,
  POLICY_DECISION: ['action', 'toolName', 'toolCallId', 'policyIds', 'reason', 'input', 'approvalId'],
  APPROVAL_WITHDRAWN: ['approvalId', 'toolName', 'toolCallId', 'reason'],
  WAITING: [],
  HANDOFF: ['from', 'to', 'toolCallId'],
  ERROR: ['message', 'type', 'name', 'stack', 'causes', 'code', ...FAILURE],
  SCORE: ['name', 'value', 'author', 'comment'],
  SESSION_OUTCOME: ['status', 'message', 'reason', ...FAILURE],
}
const SEEN = new Map<string, readonly string[]>(Object.entries(SEEN_OF))
/** Shown for every event: span ids in the inspector, and the sub-agent in every view. */
const ALWAYS = ['subagent', 'agent', 'spanId', 'parentSpanId']
const NAME_CHARS = 60

export function unseenFields(eventType: string, payload: unknown): string[] {
  if (!isObject(payload)) return []
  const seen = new Set([...(SEEN.get(eventType) ?? []), ...ALWAYS])
  return Object.keys(payload).flatMap((name) =>
    seen.has(name) ? [] : name.length > NAME_CHARS ? `${name.slice(0, NAME_CHARS)}…` : name,
  )
}
