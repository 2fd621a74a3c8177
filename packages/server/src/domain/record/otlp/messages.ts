/**
 * `{ role, content, toolCalls, toolCallId }` from the GenAI conventions (before and since 1.37), OpenInference,
 * Traceloop, the Vercel AI SDK, OpenAI, Anthropic and Gemini.
 */
import { isObject, parsed, set, textOf, type Attributes, type Json, type JsonObject } from './attributes.ts'

export function inputMessages(attributes: Attributes): Json[] | undefined {
  const messages = listOf(
    attributes.takeJson(
      'gen_ai.input.messages',
      'pydantic_ai.all_messages',
      'all_messages_events',
      'ai.prompt.messages',
    ),
    attributes.takeTree('llm.input_messages'),
    attributes.takeTree('gen_ai.prompt'),
    attributes.takeJson('gen_ai.prompt', 'ai.prompt', 'langfuse.observation.input'),
  )
  const system = attributes.takeJson('gen_ai.system_instructions')
  if (system === undefined) return messages
  return [set({ role: 'system', ...contentOf(Array.isArray(system) ? system : [system]) }), ...(messages ?? [])]
}

export function outputOf(attributes: Attributes): Json | undefined {
  const answers = listOf(
    attributes.takeJson('gen_ai.output.messages'),
    attributes.takeTree('llm.output_messages'),
    attributes.takeTree('gen_ai.completion'),
    attributes.takeJson('gen_ai.completion', 'langfuse.observation.output'),
  )
  return oneOrAll(answers) ?? vercelAnswer(attributes)
}

export function oneOrAll(messages: Json[] | undefined): Json | undefined {
  return messages?.length === 1 ? messages[0] : messages
}

function vercelAnswer(attributes: Attributes): Json | undefined {
  const text = attributes.take('ai.response.text')
  const calls = attributes.takeJson('ai.response.toolCalls')
  const object = attributes.takeJson('ai.response.object')
  if (text === undefined && calls === undefined) return object
  const toolCalls = Array.isArray(calls) ? calls.map((call) => toolCall(call)) : undefined
  return set({ role: 'assistant', content: text ?? object, toolCalls })
}

/** The first list that is present. `ai.prompt` is an object with `system`, `prompt` or `messages`. */
function listOf(...messageLists: (Json | undefined)[]): Json[] | undefined {
  const first = messageLists.find((value) => value !== undefined)
  if (first === undefined) return undefined
  if (Array.isArray(first)) return first.flatMap(messagesOf)
  if (!isObject(first)) return messagesOf(first)
  const { system, prompt, messages } = first
  if (system === undefined && prompt === undefined && messages === undefined) return messagesOf(first)
  const messageList = messages ?? prompt
  return [
    ...(system === undefined ? [] : [set({ role: 'system', content: system })]),
    ...(Array.isArray(messageList)
      ? messageList.flatMap(messagesOf)
      : messageList === undefined
        ? []
        : [set({ role: 'user', content: messageList })]),
  ]
}

function messagesOf(messageValue: Json): JsonObject[] {
  if (!isObject(messageValue)) return [{ content: messageValue }]
  const message = isObject(messageValue['message']) ? messageValue['message'] : messageValue
  const sent = message['parts'] ?? message['contents'] ?? message['content'] ?? null
  const parts = parsed(sent)
  const calls = message['tool_calls'] ?? message['toolCalls']
  const { content, toolCalls: inContent, results } = Array.isArray(parts) ? contentOf(parts) : { content: sent }
  const direct = Array.isArray(calls) ? calls.map((call) => toolCall(call)) : []
  const toolCalls = [...direct, ...(inContent ?? [])]
  if (results !== undefined && content === undefined && toolCalls.length === 0) return results
  const shaped = set({
    role: message['role'],
    name: message['name'],
    content: content ?? undefined,
    toolCalls: toolCalls.length > 0 ? toolCalls : undefined,
    toolCallId: textOf(message['tool_call_id'] ?? message['toolCallId'] ?? message['id']),
    finishReason: message['finish_reason'] ?? messageValue['finish_reason'],
  })
  return [...(results ?? []), shaped]
}

function contentOf(parts: Json[]): { content: Json | undefined; toolCalls?: Json[]; results?: JsonObject[] } {
  const toolCalls: Json[] = []
  const results: JsonObject[] = []
  const left: Json[] = []
  for (const rawPart of parts) {
    const messagePart = isObject(rawPart) && isObject(rawPart['message_content']) ? rawPart['message_content'] : rawPart
    const type = isObject(messagePart) ? textOf(messagePart['type']) : undefined
    if (isObject(messagePart) && (CALLS.has(type ?? '') || isObject(messagePart['functionCall'])))
      toolCalls.push(toolCall(messagePart))
    else if (isObject(messagePart) && RESULTS.has(type ?? '')) results.push(resultOf(messagePart))
    else left.push(textPart(messagePart, type) ?? messagePart)
  }
  const isText = left.every((leftPart) => typeof leftPart === 'string')
  const content = left.length === 0 ? undefined : left.length === 1 ? left[0] : isText ? left.join('\n') : left
  return { content, ...(toolCalls.length > 0 ? { toolCalls } : {}), ...(results.length > 0 ? { results } : {}) }
}

function resultOf(messagePart: JsonObject): JsonObject {
  const result =
    messagePart['response'] ?? messagePart['result'] ?? messagePart['output'] ?? messagePart['content'] ?? null
  return set({
    role: 'tool',
    content: isObject(result) && result['type'] === 'text' ? (result['value'] ?? result) : result,
    toolCallId: textOf(messagePart['id'] ?? messagePart['tool_use_id'] ?? messagePart['toolCallId']),
  })
}

const CALLS = new Set(['tool_call', 'tool-call', 'tool_use', 'function_call'])
const RESULTS = new Set(['tool_call_response', 'tool-result', 'tool_result', 'function_call_output'])
const TEXTS = new Set(['text', 'input_text', 'output_text'])

function textPart(messagePart: Json, type: string | undefined): string | undefined {
  if (!isObject(messagePart)) return textOf(messagePart)
  if (type !== undefined && !TEXTS.has(type)) return undefined
  return textOf(messagePart['text'] ?? messagePart['content'])
}

function toolCall(rawCall: Json): Json {
  if (!isObject(rawCall)) return rawCall
  const call = [rawCall['tool_call'], rawCall['functionCall'], rawCall].find(isObject) ?? rawCall
  const named = isObject(call['function']) ? call['function'] : call
  const args = named['arguments'] ?? named['args'] ?? named['input']
  return set({
    id: call['id'] ?? call['toolCallId'] ?? call['call_id'],
    name: named['name'] ?? named['toolName'],
    arguments: args === undefined ? undefined : parsed(args),
  })
}

/** A message in the events of GenAI conventions before 1.37; null for any other event. */
export function eventMessage(
  name: string,
  attributes: Attributes,
  body: Json | undefined,
): { isOutput: boolean; message: Json } | null {
  const role = ROLES.get(name)
  if (role !== undefined) {
    const rawMessage: JsonObject = { ...(isObject(body) ? body : { content: body ?? null }), ...attributes.takeRest() }
    const members = Object.entries(rawMessage).map(([key, value]): [string, Json] => [key, parsed(value)])
    return { isOutput: name === 'gen_ai.choice', message: { role, ...messagesOf(Object.fromEntries(members))[0] } }
  }
  const prompt = attributes.takeJson('gen_ai.prompt')
  if (name === 'gen_ai.content.prompt' && prompt !== undefined) return { isOutput: false, message: prompt }
  const completion = attributes.takeJson('gen_ai.completion')
  if (name === 'gen_ai.content.completion' && completion !== undefined) return { isOutput: true, message: completion }
  return null
}

const ROLES = new Map([
  ['gen_ai.system.message', 'system'],
  ['gen_ai.user.message', 'user'],
  ['gen_ai.assistant.message', 'assistant'],
  ['gen_ai.tool.message', 'tool'],
  ['gen_ai.choice', 'assistant'],
])
