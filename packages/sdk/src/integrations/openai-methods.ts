/** Reads requests and answers of the OpenAI API, both for its client and for the proxy of `tacho record`. */
import { candidatesIn } from './asked-calls.ts'
import { callUsage, gatewayCost } from './call-usage.ts'
import type { Method } from './client.ts'
import { fields, text, toolNames, type Fields } from './host.ts'
import { answerOf, messagesOf, withSystem, type Message } from './messages.ts'
import type { ModelResult } from './model-call.ts'
import type { Collector } from './model-stream.ts'

export const CHAT: Method = {
  path: ['chat', 'completions', 'create'],
  request: ({ model, messages, tools }) => ({
    model,
    provider: 'openai',
    messages: messagesOf(messages),
    tools: toolNames(tools),
  }),
  result: (answer) => chatResult(answer['model'], answer['usage'], candidatesIn(answer['choices'])),
  stream: () => new ChatStream(),
}

export const RESPONSES: Method = {
  path: ['responses', 'create'],
  request: ({ model, instructions, input, tools }) => {
    const messages = withSystem(instructions, messagesOf(input))
    return { model, provider: 'openai', messages, tools: toolNames(tools) }
  },
  result: responseResult,
  stream: () => new ResponseStream(),
}

export const EMBEDDINGS: Method = {
  path: ['embeddings', 'create'],
  request: ({ model, input }) => ({ model, provider: 'openai', messages: [{ role: 'user', content: input }] }),
  result: ({ model, usage }) => ({ model, usage: callUsage(usage), cost: gatewayCost(usage) }),
  stream: () => new ChatStream(),
}

/** For several candidates, the output is a list. */
function chatResult(model: unknown, usage: unknown, asked: readonly Fields[]): ModelResult {
  const messages = messagesOf(asked)
  return {
    model,
    usage: callUsage(usage),
    cost: gatewayCost(usage),
    output: messages.length > 1 ? messages : messages[0],
    finishReason: asked[0]?.['finish_reason'],
    asked,
  }
}

/** Maximum number of candidates that are read. Providers send fewer. */
const CHOICES_MAX = 256

/** Pieces of one candidate. */
interface ChoicePieces {
  content: string
  finishReason: unknown
  readonly calls: Map<unknown, ToolCallPieces>
}

interface ToolCallPieces {
  id: unknown
  /** A custom call has plain text instead of JSON arguments. */
  type: 'function' | 'custom'
  function: { name: string; arguments: string }
}

class ChatStream implements Collector {
  #model: unknown
  #usage: unknown
  /** Keyed by index, because pieces arrive in any order. */
  readonly #choices = new Map<unknown, ChoicePieces>()

  get isComplete(): boolean {
    const choices = [...this.#choices.values()]
    return choices.length > 0 && choices.every(({ finishReason }) => finishReason !== undefined)
  }

  add(chunk: Fields): boolean {
    this.#model = chunk['model'] ?? this.#model
    this.#usage = chunk['usage'] ?? this.#usage
    const { choices } = chunk
    return Array.isArray(choices) && choices.filter((choice) => this.#addPiece(fields(choice))).length > 0
  }

  #addPiece({ index = 0, delta, finish_reason: reason }: Fields): boolean {
    const choice = this.#choices.get(index) ?? { content: '', finishReason: undefined, calls: new Map() }
    const { content, tool_calls: calls } = fields(delta)
    choice.finishReason = reason ?? choice.finishReason
    choice.content += text(content) ?? ''
    if (Array.isArray(calls)) for (const call of calls) addCall(choice, fields(call))
    if (this.#choices.size < CHOICES_MAX) this.#choices.set(index, choice)
    return text(content) !== undefined || calls !== undefined
  }

  result(): ModelResult {
    const choices = [...this.#choices].toSorted(([a], [b]) => Number(a) - Number(b))
    const messages = choices.map(([, { content, finishReason, calls }]) => ({
      role: 'assistant',
      content: content || undefined,
      tool_calls: [...calls.values()],
      finish_reason: finishReason,
    }))
    return chatResult(this.#model, this.#usage, messages)
  }
}

function addCall({ calls }: ChoicePieces, piece: Fields): void {
  const { index, id, custom } = piece
  const call: ToolCallPieces = calls.get(index) ?? {
    id,
    type: custom === undefined ? 'function' : 'custom',
    function: { name: '', arguments: '' },
  }
  const named = fields(piece['function'] ?? custom)
  const name = text(named['name']) ?? ''
  // Some servers repeat id and name in each piece.
  const isRepeated = id !== undefined && id === call.id && name === call.function.name
  if (!isRepeated) call.function.name += name
  call.function.arguments += text(named['arguments'] ?? named['input']) ?? ''
  calls.set(index, call)
}

class ResponseStream implements Collector {
  isComplete = false
  #response: Fields = {}
  #content = ''

  add(event: Fields): boolean {
    const type = String(event['type'])
    if (/^response\.(created|completed|failed|incomplete)$/.test(type)) this.#response = fields(event['response'])
    this.isComplete ||= /^response\.(completed|failed|incomplete)$/.test(type)
    if (type === 'response.output_text.delta') this.#content += text(event['delta']) ?? ''
    return type.endsWith('.delta')
  }

  result(): ModelResult {
    const result = responseResult(this.#response)
    return this.isComplete || this.#content === '' ? result : { ...result, output: answerOf(this.#content) }
  }
}

function responseResult(answer: Fields): ModelResult {
  const { model, usage, status, output, error } = answer
  const reason = fields(answer['incomplete_details'])['reason'] ?? fields(error)['message'] ?? status
  return {
    model,
    usage: callUsage(usage),
    cost: gatewayCost(usage),
    output: merged(messagesOf(output)),
    finishReason: reason,
    asked: output,
  }
}

/** The items of a response are parts of one message. */
function merged(items: readonly Message[]): Message | undefined {
  const contents = items.map(({ content }) => content).filter((content) => content !== undefined)
  const toolCalls = items.flatMap((item) => item.toolCalls ?? [])
  if (contents.length === 0 && toolCalls.length === 0) return undefined
  return {
    role: 'assistant',
    ...(contents.length > 0 && { content: contents.length === 1 ? contents[0] : contents }),
    ...(toolCalls.length > 0 && { toolCalls }),
  }
}
