/**
 * The chat API of Ollama: one JSON object, or one line of JSON for each piece. Calls have no ids: the name and the
 * place in the answer identify a call.
 */
import { callUsage } from '../../../../sdk/src/integrations/call-usage.ts'
import { fields, text, toolNames, type Fields } from '../../../../sdk/src/integrations/host.ts'
import { messagesOf, type Message } from '../../../../sdk/src/integrations/messages.ts'
import type { ModelResult } from '../../../../sdk/src/integrations/model-call.ts'
import type { Collector } from '../../../../sdk/src/integrations/model-stream.ts'
import { listOf, type Protocol } from './protocol.ts'

export const OLLAMA: Protocol = {
  name: 'ollama',
  request: ({ model, messages, tools }) => ({
    model,
    provider: 'ollama',
    messages: withIds(listOf(messages)),
    tools: toolNames(tools),
  }),
  result: resultOf,
  stream: () => new ChatLines(),
}

function named(calls: readonly Fields[]): Fields[] {
  const places = new Map<unknown, number>()
  return calls.map((call) => {
    const { name } = fields(call['function'])
    const place = places.get(name) ?? 0
    places.set(name, place + 1)
    return { ...call, id: text(call['id']) ?? `${String(name)}#${place}` }
  })
}

/** A result names its tool, not its call. */
function withIds(messages: readonly Fields[]): Message[] {
  let places = new Map<unknown, number>()
  return messages.flatMap((message) => {
    const { role, tool_calls: calls, tool_name: name } = message
    if (role === 'assistant') places = new Map()
    if (role !== 'tool' || message['tool_call_id'] !== undefined)
      return messagesOf([calls === undefined ? message : { ...message, tool_calls: named(listOf(calls)) }])
    const place = places.get(name) ?? 0
    places.set(name, place + 1)
    return messagesOf([{ ...message, tool_call_id: `${String(name)}#${place}` }])
  })
}

function resultOf({
  model,
  message,
  done_reason: reason,
  prompt_eval_count: prompt,
  eval_count: output,
}: Fields): ModelResult {
  const whole = { ...fields(message), tool_calls: named(listOf(fields(message)['tool_calls'])) }
  const isCounted = prompt !== undefined || output !== undefined
  return {
    model,
    usage: isCounted ? callUsage({ prompt_tokens: prompt ?? 0, completion_tokens: output ?? 0 }) : undefined,
    output: message === undefined ? undefined : messagesOf([whole])[0],
    finishReason: reason,
    asked: [whole],
  }
}

class ChatLines implements Collector {
  isComplete = false
  #last: Fields = {}
  #content = ''
  readonly #calls: Fields[] = []

  add(line: Fields): boolean {
    const { content, tool_calls: calls } = fields(line['message'])
    this.#last = line
    this.isComplete = line['done'] === true
    this.#content += text(content) ?? ''
    if (this.#calls.length < CALLS_MAX) this.#calls.push(...listOf(calls))
    return text(content) !== undefined || calls !== undefined
  }

  result(): ModelResult {
    const message = { role: 'assistant', content: this.#content || undefined, tool_calls: this.#calls }
    return resultOf({ ...this.#last, message })
  }
}

const CALLS_MAX = 1_000
