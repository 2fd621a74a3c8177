/** Where OpenAI's files have a conversation, other than in `messages`. Pure, and of values that nobody has checked. */
import { isObject } from '@tacho/contract/record/payload-reader.ts'

type Fields = Record<string, unknown>

/**
 * The line with `messages`: of a request or an answer of the Batch API, in either of OpenAI's two APIs, or of an example of
 * preference tuning. Another line stays as it is.
 */
export function withMessages(line: Fields): Fields {
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

/** The first choice of an answer of Chat Completions. */
function answered({ choices, created }: Fields): unknown[] | undefined {
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined
  const message = isObject(choice) ? choice['message'] : undefined
  return isObject(message) ? [{ created_at: created, ...message }] : undefined
}

/** A request or an answer of the Responses API. */
function responded({ instructions, input, output, created_at: createdAt }: Fields): unknown[] | undefined {
  if (typeof input !== 'string' && !Array.isArray(input) && !Array.isArray(output)) return undefined
  // An input without instructions and an answer may as well be for embeddings.
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

/** What the model says and the calls that it asks for beside it are one message. */
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
