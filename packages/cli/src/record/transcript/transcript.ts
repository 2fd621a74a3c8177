/** Parses one line of a transcript file: a conversation in OpenAI's chat format. Pure. */
import { hash } from 'node:crypto'
import { isObject } from '@tacho/contract/record/payload-reader.ts'

/** A message with checked fields; `source` is the original. */
export interface Message {
  role: 'system' | 'developer' | 'user' | 'assistant' | 'tool'
  source: Record<string, unknown>
  content: string | unknown[] | null
  toolCalls: ToolCall[]
  /** Set for a tool message: the call that it answers. */
  toolCallId: string | null
}

export interface ToolCall {
  id: string | null
  name: string
  /** Arguments as the model wrote them: usually JSON text. */
  arguments: unknown
}

export interface Transcript {
  /** 128 bits of the SHA-256 of the line, in hex. Ids are derived from it. */
  hash: string
  messages: Message[]
  /** All other fields of the line. */
  fields: Record<string, unknown>
}

type Judged = { ok: true; transcript: Transcript } | { ok: false; problem: string }

/** Checks a UTF-8 line without its line end. A problem is part of a sentence: "message 3 is not an object". */
export function readTranscript(line: Buffer): Judged {
  try {
    const { messages, ...fields } = withMessages(objectOf(parsed(line), 'the line'))
    if (!Array.isArray(messages)) throw new Fault('it has no array "messages"')
    if (messages.length === 0) throw new Fault('its "messages" are empty')
    const judged = messages.map((message: unknown, index) => readMessage(message, `message ${index + 1}`))
    return { ok: true, transcript: { hash: hash('sha256', line).slice(0, 32), messages: judged, fields } }
  } catch (error) {
    if (error instanceof Fault) return { ok: false, problem: error.message }
    throw error
  }
}

class Fault extends Error {}

function parsed(line: Buffer): unknown {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(line)
  } catch {
    throw new Fault('it is not valid UTF-8')
  }
  try {
    return JSON.parse(text)
  } catch {
    throw new Fault('it is not valid JSON')
  }
}

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool'] as const

function readMessage(value: unknown, name: string): Message {
  const source = objectOf(value, name)
  // Before tools existed, the result of a function had its own role.
  const sent = source['role'] === 'function' ? 'tool' : source['role']
  const role = ROLES.find((known) => known === sent)
  if (role === undefined) throw new Fault(`${name} must have one of the roles ${ROLES.join(', ')}`)
  const { content = null, tool_calls: calls = null, tool_call_id: callId = null } = source
  if (content !== null && typeof content !== 'string' && !Array.isArray(content)) {
    throw new Fault(`${name} has a content that is neither text nor an array`)
  }
  if (calls !== null && !Array.isArray(calls)) throw new Fault(`${name} has "tool_calls" that are not an array`)
  if (callId !== null && typeof callId !== 'string') throw new Fault(`${name} has a "tool_call_id" that is not text`)
  const { function_call: called = null } = source
  const sentCalls = calls ?? (called === null ? [] : [{ function: called }])
  const toolCalls = (sentCalls as unknown[]).map((call, index) => readCall(call, `tool call ${index + 1} of ${name}`))
  return { role, source, content, toolCalls, toolCallId: callId }
}

/** A call of a function, or of a tool that takes free text (`custom`). */
function readCall(value: unknown, name: string): ToolCall {
  const call = objectOf(value, name)
  const { id = null } = call
  if (id !== null && typeof id !== 'string') throw new Fault(`${name} has an id that is not text`)
  const tool = objectOf(call['function'] ?? call['custom'], `the function of ${name}`)
  if (typeof tool['name'] !== 'string' || tool['name'] === '') throw new Fault(`${name} has no name`)
  return { id, name: tool['name'], arguments: tool['arguments'] ?? tool['input'] ?? null }
}

function objectOf(value: unknown, name: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new Fault(`${name} is not a JSON object`)
}

/** Finds the conversation in OpenAI files without `messages`. The values are unchecked. */

type Fields = Record<string, unknown>

/**
 * Converts a line to one with `messages`: a request or response of the Batch API, in either of OpenAI's two APIs, or an
 * example for preference tuning. Any other line stays unchanged.
 */
function withMessages(line: Fields): Fields {
  if (line['messages'] !== undefined) return line
  const { body, response, ...more } = line
  const answer = isObject(response) ? response['body'] : undefined
  const inner = isObject(body) ? body : isObject(answer) ? answer : undefined
  const fields = inner === undefined ? line : { ...more, ...inner }
  if (fields['messages'] !== undefined) return fields
  const messages = preferred(fields) ?? answered(fields) ?? responded(fields)
  if (messages === undefined) return fields
  const { choices: _, instructions: __, input: ___, output: ____, preferred_output: _____, ...others } = fields
  return { ...others, messages }
}

function preferred({ input, preferred_output: output }: Fields): unknown[] | undefined {
  if (!isObject(input) || !Array.isArray(input['messages']) || !Array.isArray(output)) return undefined
  return [...(input['messages'] as unknown[]), ...(output as unknown[])]
}

/** The messages of a Chat Completions response: its first choice. */
function answered({ choices, created }: Fields): unknown[] | undefined {
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined
  const message = isObject(choice) ? choice['message'] : undefined
  return isObject(message) ? [{ created_at: created, ...message }] : undefined
}

/** The messages of a Responses API request or response. */
function responded({ instructions, input, output, created_at: createdAt }: Fields): unknown[] | undefined {
  if (typeof input !== 'string' && !Array.isArray(input) && !Array.isArray(output)) return undefined
  // Without instructions and output, the input may also be for embeddings.
  if (typeof input === 'string' && instructions === undefined && !Array.isArray(output)) return undefined
  const messages: Fields[] = []
  if (typeof instructions === 'string') messages.push({ role: 'system', content: instructions })
  if (typeof input === 'string') messages.push({ role: 'user', content: input })
  for (const item of [...(Array.isArray(input) ? input : []), ...(Array.isArray(output) ? output : [])] as unknown[]) {
    if (!isObject(item)) return undefined
    addItem(messages, item)
  }
  const last = messages.at(-1)
  if (last?.['role'] === 'assistant') last['created_at'] ??= createdAt
  return messages
}

/** Adds an item. Merges the model's text and the calls beside it into one message. */
function addItem(messages: Fields[], item: Fields): void {
  const { type = 'message', call_id: id } = item
  if (String(type).endsWith('_call_output')) {
    const { output } = item
    const content = typeof output === 'string' ? output : JSON.stringify(output)
    messages.push({ role: 'tool', tool_call_id: id, content })
    return
  }
  if (type === 'message' && item['role'] !== 'assistant') {
    messages.push(item)
    return
  }
  const last = messages.at(-1)
  const message: Fields = last?.['role'] === 'assistant' ? last : { role: 'assistant', content: [], tool_calls: [] }
  if (message !== last) messages.push(message)
  const { name, content } = item
  if (type === 'function_call' || type === 'custom_tool_call') {
    const call = { id, function: { name, arguments: item['arguments'] ?? item['input'] } }
    message['tool_calls'] = [...listOf(message['tool_calls']), call]
  } else {
    const parts =
      type === 'message' ? (typeof content === 'string' ? [{ type: 'text', text: content }] : content) : [item]
    message['content'] = [...listOf(message['content']), ...listOf(parts)]
  }
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? (value as unknown[]) : [])
