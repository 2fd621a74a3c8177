/** Converts one message of a transcript to events that follow the payload conventions. Pure. */
import { callCounts } from '@tacho/contract/record/usage-shapes.ts'
import { messageTime } from './times.ts'
import type { Message, ToolCall, Transcript } from './transcript.ts'

/** An event without a time. */
export interface EventDraft {
  /** Derived from the line's hash and the message number, so a repeated import gives the same ids. */
  eventId: string
  eventType: 'USER_INPUT' | 'AGENT_STEP' | 'LLM_CALL' | 'TOOL_CALL' | 'SESSION_OUTCOME'
  label: string
  payload: Record<string, unknown>
  /** Time in milliseconds, if the message has one. */
  time: number | null
}

const LABEL_CHARS = 100

/** Events in message order. Adds faults to `problems`, each as part of a sentence. */
export function draftMessages({ hash, messages, fields }: Transcript, problems: string[]): EventDraft[] {
  const calls = joinCalls(messages)
  const last = messages.findLast(({ role }) => role === 'assistant')
  const usageOf = (message: Message): Record<string, unknown> => modelUsage(message, fields, messages, last)
  const events = messages.flatMap((message, index) => {
    const number = index + 1
    const drafted = draftMessage(message, number, calls, usageOf, problems)
    return drafted.map((event, place) => ({
      ...event,
      eventId: place === 0 ? `${hash}-${number}` : `${hash}-${number}.${place}`,
      time: messageTime(message.source),
    }))
  })
  // Other fields of the line (a task, a trial) belong to the run, but runs have no fields for them. So the first event
  // gets them.
  const [first, ...laterEvents] = events
  if (!first || Object.keys(fields).length === 0) return events
  return [{ ...first, payload: { ...first.payload, transcript: fields } }, ...laterEvents]
}

type Drafted = Pick<EventDraft, 'eventType' | 'label' | 'payload'>

function draftMessage(
  message: Message,
  number: number,
  calls: JoinedCalls,
  usageOf: (message: Message) => Record<string, unknown>,
  problems: string[],
): Drafted[] {
  switch (message.role) {
    case 'user':
      return [{ eventType: 'USER_INPUT', label: labelOf(message, 'User input'), payload: textPayload(message) }]
    case 'system':
    case 'developer':
      return [{ eventType: 'AGENT_STEP', label: 'System prompt', payload: textPayload(message) }]
    case 'tool':
      return [draftResult(message, calls.answered.get(message), number, problems)]
    case 'assistant': {
      const label = labelOf(message, message.toolCalls.map(({ name }) => name).join(', ') || 'Model call')
      const call: Drafted = { eventType: 'LLM_CALL', label, payload: { ...usageOf(message), output: message.source } }
      return [call, ...message.toolCalls.filter((open) => calls.open.has(open)).map(draftOpenCall)]
    }
  }
}

function draftResult(message: Message, call: ToolCall | undefined, number: number, problems: string[]): Drafted {
  const { source, content } = message
  const named = typeof source['name'] === 'string' && source['name'] !== '' ? source['name'] : null
  const toolName = call?.name ?? named ?? 'unknown'
  if (call === undefined) problems.push(`message ${number} answers no tool call: it is kept without an input`)
  // Chat transcripts do not mark failed calls; by convention, the text of an error begins with "Error".
  const error = typeof content === 'string' && /^error\b/i.test(content) ? content : undefined
  const payload = {
    toolName,
    ...(message.toolCallId === null ? {} : { toolCallId: message.toolCallId }),
    ...(call === undefined ? {} : { input: inputOf(call) }),
    output: content,
    ...(error === undefined ? {} : { error }),
    ...otherFields(message, ['role', 'content', 'name', 'tool_call_id']),
  }
  return { eventType: 'TOOL_CALL', label: shortened(toolName), payload }
}

function draftOpenCall(call: ToolCall): Drafted {
  const { id, name } = call
  const payload = { toolName: name, ...(id === null ? {} : { toolCallId: id }), input: inputOf(call) }
  return { eventType: 'TOOL_CALL', label: shortened(name), payload }
}

/** The parsed arguments, or the model's text if it is not JSON. The LLM_CALL contains the text in both cases. */
function inputOf(call: ToolCall): unknown {
  if (typeof call.arguments !== 'string') return call.arguments
  try {
    return JSON.parse(call.arguments)
  } catch {
    return call.arguments
  }
}

function textPayload(message: Message): Record<string, unknown> {
  const parts = Array.isArray(message.content) ? { content: message.content } : {}
  return { text: textOf(message), ...parts, ...otherFields(message, ['role', 'content']) }
}

function textOf({ content }: Message): string {
  if (!Array.isArray(content)) return content ?? ''
  const texts = content.map((contentPart) =>
    typeof contentPart === 'object' && contentPart !== null ? (contentPart as { text?: unknown }).text : contentPart,
  )
  return texts.filter((text) => typeof text === 'string').join('\n')
}

/** All other fields of the message, so that nothing is lost. */
function otherFields(message: Message, taken: readonly string[]): Record<string, unknown> {
  const left = Object.entries(message.source).filter(([key]) => !taken.includes(key))
  return left.length === 0 ? {} : { message: Object.fromEntries(left) }
}

function labelOf(message: Message, otherwise: string): string {
  return shortened(textOf(message)) || shortened(otherwise)
}

/** The beginning of a text, on one line. */
function shortened(text: string): string {
  const line = text
    .slice(0, 4 * LABEL_CHARS)
    .toWellFormed()
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
  const characters = Array.from(line)
  return characters.length <= LABEL_CHARS ? line : `${characters.slice(0, LABEL_CHARS - 1).join('')}…`
}

/** Finds the result of each tool call. Pure. */

interface JoinedCalls {
  /** For each tool message, the call that it answers. A message without an entry answers none. */
  answered: Map<Message, ToolCall>
  /** Calls without a result. */
  open: Set<ToolCall>
}

/** Joins calls and results by id. Some models reuse an id; then a result answers the oldest open call. */
function joinCalls(messages: readonly Message[]): JoinedCalls {
  const answered = new Map<Message, ToolCall>()
  const open = new Set<ToolCall>()
  const byId = new Map<string, ToolCall[]>()
  for (const message of messages) {
    for (const call of message.toolCalls) {
      open.add(call)
      const id = call.id ?? functionId(call.name)
      const same = byId.get(id)
      if (same) same.push(call)
      else byId.set(id, [call])
    }
    const { toolCallId, source } = message
    const id = toolCallId ?? (source['role'] === 'function' ? functionId(source['name']) : null)
    const call = id === null ? undefined : byId.get(id)?.shift()
    if (message.role !== 'tool' || call === undefined) continue
    answered.set(message, call)
    open.delete(call)
  }
  return { answered, open }
}

/** An id for a `function_call`, made from its name because it has none. */
const functionId = (name: unknown): string => `function\0${String(name)}`

/** Model, tokens and cost of a model call, under the keys that the server sums. Pure. */

const SUMS: readonly string[] = ['promptTokens', 'completionTokens', 'totalTokens']

/**
 * `model`, `usage`, `cost` and `latency` of a message or its line. Totals of a line cover the whole conversation. They
 * count once, with the `last` model call, and only if no message has its own.
 */
function modelUsage(
  message: Message,
  fields: Record<string, unknown>,
  messages: readonly Message[],
  last: Message | undefined,
): Record<string, unknown> {
  const { source } = message
  const isLast = message === last
  const ofLine = (key: string): unknown =>
    isLast && messages.every((one) => one.source[key] === undefined) ? fields[key] : undefined
  const known = {
    model: text(source['model']) ?? text(fields['model']),
    usage: tokens(source['usage'] ?? ofLine('usage')),
    cost: number(source['cost'] ?? ofLine('cost')),
    latency: number(source['latency']),
  }
  return Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined))
}

/** Keeps a value that is not a count unchanged, so that the server warns about it. */
function tokens(usage: unknown): unknown {
  const counts = callCounts(usage)
  if (counts === null) return undefined
  const { invalid, unknown: _, ...known } = counts
  if (invalid.length > 0) return usage
  return Object.fromEntries(
    Object.entries(known).filter(([name, count]) => count !== null && (count > 0 || SUMS.includes(name))),
  )
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function number(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
