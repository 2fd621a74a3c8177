/**
 * Converts messages of OpenAI (chat completions, responses), Anthropic and the AI SDK to one form: `{ role, content,
 * toolCalls: [{ id, name, arguments }], toolCallId }`.
 */
import { fields, set, text, type Fields } from './host.ts'

export interface Message {
  role?: unknown
  content?: unknown
  toolCalls?: readonly unknown[]
  toolCallId?: unknown
}

/** Maximum number of messages that are read: the newest ones. */
const MESSAGES_MAX = 10_000

/** A plain text becomes a user message. Several tool results become one message each. */
export function messagesOf(rawMessages: unknown): Message[] {
  if (rawMessages === undefined || rawMessages === null) return []
  if (typeof rawMessages === 'string') return [{ role: 'user', content: rawMessages }]
  if (!Array.isArray(rawMessages)) return messageOf(rawMessages)
  const from = Math.max(0, rawMessages.length - MESSAGES_MAX)
  return rawMessages.slice(from).flatMap(messageOf)
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

function messageOf(rawMessages: unknown): Message[] {
  const message = fields(rawMessages)
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
  if (role === undefined) return [{ role: 'assistant', content: rawMessages }]
  const { content } = message
  const toolCalls = Array.isArray(message['tool_calls']) ? message['tool_calls'].map(toolCall) : []
  const toolCallId = message['tool_call_id']
  if (!Array.isArray(content)) return [shaped(role, content ?? undefined, toolCalls, toolCallId)]
  const results: Message[] = []
  const left: unknown[] = []
  for (const rawPart of content.slice(0, MESSAGES_MAX)) {
    const contentPart = fields(rawPart)
    const type = String(contentPart['type'])
    if (CALLS.has(type)) toolCalls.push(toolCall(contentPart))
    else if (RESULTS.has(type)) results.push(resultOf(contentPart))
    else left.push(TEXTS.has(type) ? (contentPart['text'] ?? rawPart) : rawPart)
  }
  const isText = left.every((contentPart) => typeof contentPart === 'string')
  const leftText = left.length === 0 ? undefined : isText ? left.join('\n') : left
  if (results.length > 0 && leftText === undefined && toolCalls.length === 0) return results
  return [...results, shaped(role, leftText, toolCalls, toolCallId)]
}

const CALLS = new Set(['tool_use', 'tool-call', 'function_call', 'tool_call', 'server_tool_use'])
const RESULTS = new Set(['tool_result', 'tool-result'])
const TEXTS = new Set(['text', 'input_text', 'output_text'])

function shaped(role: unknown, content: unknown, toolCalls: readonly unknown[], toolCallId: unknown): Message {
  return set({ role, content, toolCalls: toolCalls.length > 0 ? toolCalls : undefined, toolCallId })
}

/** A tool result. Anthropic: `tool_use_id`, `content`. AI SDK: `toolCallId`, and `output` as `{ type, value }`. */
function resultOf(contentPart: Fields): Message {
  const content =
    contentPart['content'] ?? fields(contentPart['output'])['value'] ?? contentPart['output'] ?? contentPart['result']
  const [whole] = Array.isArray(content) ? messageOf({ role: 'tool', content }) : [{ content }]
  return set({
    role: 'tool',
    content: whole?.content,
    toolCallId: contentPart['tool_use_id'] ?? contentPart['toolCallId'],
  })
}

/** The text of text parts. Any other value is returned unchanged. */
function textOf(rawValue: unknown): unknown {
  return text(fields(rawValue)['text']) ?? rawValue
}

function toolCall(rawValue: unknown): unknown {
  const call = fields(rawValue)
  const named = fields(call['function'] ?? call['custom'] ?? call)
  const args = named['arguments'] ?? named['input'] ?? named['args']
  return set({
    id: call['call_id'] ?? call['callId'] ?? call['id'] ?? call['toolCallId'],
    name: named['name'] ?? named['toolName'],
    arguments: parsed(args),
  })
}

/** The value of a JSON text. Any other value is returned unchanged. */
export function parsed(value: unknown): unknown {
  if (text(value) === undefined) return value
  try {
    return JSON.parse(value as string)
  } catch {
    return value
  }
}
