/** The OpenAI client, 4 to 7: `const openai = recordClient(new OpenAI(), tacho)`. */
import type { StopSignal } from '../delivery/runtime.ts'
import type { Recorder } from '../recorder.ts'
import type { Tacho } from '../tacho.ts'
import { askedCallsOf, candidatesIn } from './asked-calls.ts'
import { fitsParser } from './fits.ts'
import { recordMethods, type Method } from './client.ts'
import { fields, guarded, text, toolNames, withFunction, withProperty, type Fields } from './host.ts'
import { answerOf, messagesOf, withSystem, type Message } from './messages.ts'
import { callUsage, gatewayCost } from './call-usage.ts'
import type { ModelResult } from './model-call.ts'
import type { Collector } from './model-stream.ts'
import { unguarded, type WrapOptions } from './unguarded.ts'

/**
 * The same client. Its model calls are recorded as LLM_CALL events of the current run; outside a run, each becomes a run of
 * its own. Recorded are `chat.completions`, `responses` and `embeddings`, streamed or not, and the helpers that use them.
 * The answers and errors of the client stay the same. A copy made by `withOptions` is not recorded.
 */
export function recordClient<Client extends object>(client: Client, tacho: Recorder): Client {
  return recordMethods(client, tacho, METHODS)
}

/**
 * The same tools for `chat.completions.runTools`, or for `runnerFunction` of the Responses API, guarded: policies decide each
 * call, a person approves it if a policy requires that, and the call is recorded as a TOOL_CALL. Conditions see what the
 * function gets: the result of `parse`, or without it the text of the model as `tool.input.input`. A refusal is the tool's answer.
 * @throws TypeError for a tool without a function of its own.
 */
export function guardTools<Tools extends readonly object[]>(tools: Tools, tacho: Tacho, options?: WrapOptions): Tools {
  const guard = (tool: object) => {
    const { function: runnable, type, name: ofResponses, $callback: callback } = fields(tool)
    const { name: given, function: run, parse } = fields(runnable)
    const ownName = typeof run === 'function' ? text(run.name) : undefined
    const givenName = text(given) ?? text(ofResponses) ?? ownName ?? String(type)
    askedCallsOf(tacho).guard(
      givenName,
      fitsParser(parse, (raw) => raw),
    )
    const guardedRun = (run: Function) =>
      function (this: unknown, ...args: unknown[]) {
        const [input, ...more] = args
        // A host may rename a tool.
        const name = text(fields(this)['name']) ?? givenName
        const act = (judged: unknown) => Reflect.apply(run, runnable, [judged, ...more]) as unknown
        const { signal: given, controller } = fields(more[0])
        const signal = (given ?? fields(controller)['signal']) as StopSignal | undefined
        return guarded<unknown>(tacho, { name, input, signal }, act, (error) => error.modelText)
      }
    // A typed tool hides its function here, and its parser.
    const isTyped = typeof callback === 'function'
    const copy = isTyped ? withFunction(tool, '$callback', guardedRun) : tool
    if (typeof run === 'function') {
      return withProperty(copy, 'function', withFunction(runnable as object, 'function', guardedRun))
    }
    return isTyped ? copy : unguarded(tacho, tool, givenName, 'it has no function of its own.', options)
  }
  return tools.map(guard) as unknown as Tools
}

const METHODS: readonly Method[] = [
  {
    path: ['chat', 'completions', 'create'],
    request: ({ model, messages, tools }) => ({
      model,
      provider: 'openai',
      messages: messagesOf(messages),
      tools: toolNames(tools),
    }),
    result: (answer) => {
      return chatResult(answer['model'], answer['usage'], candidatesIn(answer['choices']))
    },
    stream: () => new ChatStream(),
  },
  {
    path: ['responses', 'create'],
    request: ({ model, instructions, input, tools }) => {
      const messages = withSystem(instructions, messagesOf(input))
      return { model, provider: 'openai', messages, tools: toolNames(tools) }
    },
    result: responseResult,
    stream: () => new ResponseStream(),
  },
  {
    path: ['embeddings', 'create'],
    request: ({ model, input }) => ({ model, provider: 'openai', messages: [{ role: 'user', content: input }] }),
    result: ({ model, usage }) => ({ model, usage: callUsage(usage), cost: gatewayCost(usage) }),
    stream: () => new ChatStream(),
  },
]

/** The output of several candidates is a list. */
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

/** More than any provider sends. */
const CHOICES_MAX = 256

/** Of a candidate. */
interface ChoicePieces {
  content: string
  finishReason: unknown
  readonly calls: Map<unknown, ToolCallPieces>
}

interface ToolCallPieces {
  id: unknown
  function: { name: string; arguments: string }
}

class ChatStream implements Collector {
  #model: unknown
  #usage: unknown
  /** By index: their pieces arrive in any order. */
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
  const call = calls.get(piece['index']) ?? { id: piece['id'], function: { name: '', arguments: '' } }
  const named = fields(piece['function'])
  call.function.name += text(named['name']) ?? ''
  call.function.arguments += text(named['arguments']) ?? ''
  calls.set(piece['index'], call)
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
