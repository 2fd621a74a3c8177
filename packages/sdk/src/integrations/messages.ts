/**
 * `{ role, content, toolCalls: [{ id, name, arguments }], toolCallId }` from OpenAI (chat completions, responses),
 * Anthropic and the AI SDK.
 */
import { fields, set, text, type Fields } from './host.ts'

export interface Message {
  role?: unknown
  content?: unknown
  toolCalls?: readonly unknown[]
  toolCallId?: unknown
}

/** Only the newest are read. */
const MESSAGES_MAX = 10_000

/** A text is the message of a user. Several results of tools become a message each. */
export function messagesOf(given: unknown): Message[] {
  if (given === undefined || given === null) return []
  if (typeof given === 'string') return [{ role: 'user', content: given }]
  if (!Array.isArray(given)) return messageOf(given)
  const from = Math.max(0, given.length - MESSAGES_MAX)
  return given.slice(from).flatMap(messageOf)
}

/** A system prompt may be a text or a list of parts. */
export function withSystem(system: unknown, messages: Message[]): Message[] {
  return system === undefined || system === null
    ? messages
    : [...messageOf({ role: 'system', content: system }), ...messages]
}

/** Joins the parts of an answer into one message. */
export function answerOf(parts: unknown, role = 'assistant'): Message | undefined {
  const [first, ...more] = messageOf({ role, content: parts })
  return more.length === 0 ? first : { role, content: [first, ...more] }
}

function messageOf(given: unknown): Message[] {
  const message = fields(given)
  switch (message['type']) {
    case 'function_call':
    case 'custom_tool_call':
      return [{ role: 'assistant', toolCalls: [toolCall(message)] }]
    case 'function_call_output':
    case 'custom_tool_call_output':
    case 'function_call_result':
      return [{ role: 'tool', content: textOf(message['output']), toolCallId: message['call_id'] ?? message['callId'] }]
    default:
  }
  const role = message['role']
  if (role === undefined) return [{ role: 'assistant', content: given }]
  const { content } = message
  const toolCalls = Array.isArray(message['tool_calls']) ? message['tool_calls'].map(toolCall) : []
  const toolCallId = message['tool_call_id']
  if (!Array.isArray(content)) return [shaped(role, content ?? undefined, toolCalls, toolCallId)]
  const results: Message[] = []
  const left: unknown[] = []
  for (const given of content.slice(0, MESSAGES_MAX)) {
    const part = fields(given)
    const type = String(part['type'])
    if (CALLS.has(type)) toolCalls.push(toolCall(part))
    else if (RESULTS.has(type)) results.push(resultOf(part))
    else left.push(TEXTS.has(type) ? (part['text'] ?? given) : given)
  }
  const isText = left.every((part) => typeof part === 'string')
  const own = left.length === 0 ? undefined : isText ? left.join('\n') : left
  if (results.length > 0 && own === undefined && toolCalls.length === 0) return results
  return [...results, shaped(role, own, toolCalls, toolCallId)]
}

const CALLS = new Set(['tool_use', 'tool-call', 'function_call', 'tool_call', 'server_tool_use'])
const RESULTS = new Set(['tool_result', 'tool-result'])
const TEXTS = new Set(['text', 'input_text', 'output_text'])

function shaped(role: unknown, content: unknown, toolCalls: readonly unknown[], toolCallId: unknown): Message {
  return set({ role, content, toolCalls: toolCalls.length > 0 ? toolCalls : undefined, toolCallId })
}

/** Anthropic: `tool_use_id`, `content`. AI SDK: `toolCallId`, and `output` as `{ type, value }`. */
function resultOf(part: Fields): Message {
  const content = part['content'] ?? fields(part['output'])['value'] ?? part['output'] ?? part['result']
  const [whole] = Array.isArray(content) ? messageOf({ role: 'tool', content }) : [{ content }]
  return set({ role: 'tool', content: whole?.content, toolCallId: part['tool_use_id'] ?? part['toolCallId'] })
}

/** Any other value is returned unchanged. */
function textOf(given: unknown): unknown {
  return text(fields(given)['text']) ?? given
}

function toolCall(given: unknown): unknown {
  const call = fields(given)
  const named = fields(call['function'] ?? call)
  const args = named['arguments'] ?? named['input'] ?? named['args']
  return set({
    id: call['call_id'] ?? call['callId'] ?? call['id'] ?? call['toolCallId'],
    name: named['name'] ?? named['toolName'],
    arguments: parsed(args),
  })
}

/** Any other value is returned unchanged. */
export function parsed(value: unknown): unknown {
  if (text(value) === undefined) return value
  try {
    return JSON.parse(value as string)
  } catch {
    return value
  }
}
