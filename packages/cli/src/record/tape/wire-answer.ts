/**
 * Formats a recorded model answer as its provider sends it: as a whole, or as server-sent events. Ids are those of the
 * tape.
 */
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { protocolOf } from '@tacho/guards/wire/protocols.ts'
import type { Message } from '../../../../sdk/src/integrations/messages.ts'
import { recordedMessages } from './compare.ts'
import type { ModelStep } from './tape.ts'

export interface WireReply {
  status: number
  headers: Record<string, string>
  body: string
}

interface Spoken {
  text: string
  calls: { id: string; name: string; arguments: string }[]
  finishReason: string
  model: string
  usage: { input: number; output: number; cached: number; reasoning: number }
  id: string
}

interface Wire {
  whole(answer: Spoken): object
  /** Data of the events. A `type` in the data is the event's name. */
  events(answer: Spoken): object[]
  end?: string
}

const WIRES: ReadonlyMap<string, Wire> = new Map([
  ['openai-chat', { whole: chatWhole, events: chatEvents, end: 'data: [DONE]\n\n' }],
  ['openai-responses', { whole: responseWhole, events: responseEvents }],
  ['anthropic-messages', { whole: messageWhole, events: messageEvents }],
  ['gemini', { whole: geminiWhole, events: (answer) => [geminiWhole(answer)] }],
])

export interface WireQuestion {
  /** Messages as integrations record them. */
  messages: unknown
  reply(step: ModelStep): WireReply
}

/** The question in a model request; undefined if a tape cannot answer it. @param path without the query. */
export function wireQuestion(path: string, body: unknown): WireQuestion | undefined {
  const protocol = protocolOf('POST', path)
  const wire = WIRES.get(protocol?.name ?? '')
  if (!protocol || !wire || !isObject(body)) return undefined
  const { model = 'recorded', messages } = protocol.request(body, path)
  const isStream = body['stream'] === true || /:stream/.test(path)
  return {
    messages,
    reply(step) {
      // Send the same bytes if the response was recorded from the same protocol.
      const { protocol: name, isStream: wasStream, status, body: bytes } = step.wire ?? {}
      if (
        bytes !== undefined &&
        status !== undefined &&
        name === protocol.name &&
        (wasStream === isStream || status >= 400)
      ) {
        return { status, headers: headersOf(status, wasStream === true), body: bytes }
      }
      if (step.error !== undefined) return errorReply(step.error)
      const answer = spokenOf(step, String(model))
      if (!isStream) return jsonReply(200, wire.whole(answer))
      const events = wire.events(answer).map((event) => {
        const { type } = event as { type?: string }
        return `${type === undefined ? '' : `event: ${type}\n`}data: ${JSON.stringify(event)}\n\n`
      })
      return { status: 200, headers: headersOf(200, true), body: `${events.join('')}${wire.end ?? ''}` }
    },
  }
}

/** Headers that keep clients of OpenAI and Anthropic from retrying an error. */
function headersOf(status: number, isStream: boolean): Record<string, string> {
  const type = { 'content-type': isStream ? 'text/event-stream' : 'application/json' }
  return status >= 400 ? { ...type, 'x-should-retry': 'false' } : type
}

export function jsonReply(status: number, value: object): WireReply {
  return { status, headers: headersOf(status, false), body: JSON.stringify(value) }
}

/** An error that every provider's client can read. */
export function errorReply(error: unknown): WireReply {
  const { message: errorText, name, status, code } = isObject(error) ? error : { message: String(error) }
  const message = typeof errorText === 'string' ? errorText : 'The model call failed'
  const [, said] = /^(?:Error code: )?([45]\d\d)\b/.exec(message) ?? []
  const known = STATUSES.find(([part]) => String(name).includes(part))?.[1] ?? 400
  const statusCode = typeof status === 'number' && status >= 400 && status < 600 ? status : Number(said ?? known)
  return jsonReply(statusCode, {
    type: 'error',
    error: { type: 'recorded_error', code: code ?? 'recorded_error', message },
  })
}

const STATUSES = [
  ['RateLimit', 429],
  ['Authentication', 401],
  ['PermissionDenied', 403],
  ['NotFound', 404],
  ['Conflict', 409],
  ['Unprocessable', 422],
  ['InternalServer', 500],
  ['Connection', 503],
  ['Timeout', 504],
] as const

function spokenOf(step: ModelStep, asked: string): Spoken {
  const { output, toolCalls: problems, finishReason, usage } = step
  // Use the first of several answers.
  const [message] = typeof output === 'string' ? [{ content: output }] : recordedMessages(output)
  const { content, toolCalls }: Message = message ?? {}
  const askedCalls = Array.isArray(toolCalls) ? toolCalls : Array.isArray(problems) ? problems : []
  // Arguments that could not be parsed are recorded as received.
  const raw = new Map(
    (Array.isArray(problems) ? problems.filter(isObject) : []).map((call) => [String(call['id']), call['arguments']]),
  )
  const calls = askedCalls.filter(isObject).map((call, index) => {
    const id = typeof call['id'] === 'string' ? call['id'] : `call_${step.step}_${index}`
    const unread = raw.get(id)
    const input = call['arguments'] ?? {}
    const text = typeof unread === 'string' ? unread : typeof input === 'string' ? input : JSON.stringify(input)
    return { id, name: typeof call['name'] === 'string' ? call['name'] : '', arguments: text }
  })
  const counts = isObject(usage) ? usage : {}
  const count = (...names: string[]) => {
    const countValue = names.map((name) => counts[name]).find((value) => typeof value === 'number')
    return typeof countValue === 'number' ? countValue : 0
  }
  return {
    text: textOf(content),
    calls,
    finishReason: typeof finishReason === 'string' ? finishReason : '',
    model: step.model ?? asked,
    usage: {
      input: count('promptTokens', 'input_tokens', 'prompt_tokens'),
      output: count('completionTokens', 'output_tokens', 'completion_tokens'),
      cached: count('cachedTokens'),
      reasoning: count('reasoningTokens'),
    },
    id: `tape_${step.step}`,
  }
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return content === undefined || content === null ? '' : JSON.stringify(content)
  return content
    .map((contentPart: unknown) =>
      typeof contentPart === 'string' ? contentPart : isObject(contentPart) ? contentPart['text'] : undefined,
    )
    .filter((text) => typeof text === 'string')
    .join('\n')
}

const CUT = /length|max_/

function chatFinish({ finishReason, calls }: Spoken): string {
  if (CUT.test(finishReason)) return 'length'
  if (finishReason === 'content_filter') return finishReason
  return calls.length > 0 ? 'tool_calls' : 'stop'
}

function chatUsage({ usage: { input, output, cached, reasoning } }: Spoken): object {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: reasoning },
  }
}

const CREATED = 1_790_000_000

function chatCalls({ calls }: Spoken) {
  return calls.map(({ id, ...named }, index) => ({ index, id, type: 'function', function: named }))
}

function chatWhole(answer: Spoken): object {
  const { id, model, text } = answer
  const calls = chatCalls(answer).map(({ index: _, ...call }) => call)
  const message = {
    role: 'assistant',
    content: text === '' ? null : text,
    refusal: null,
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  const choice = { index: 0, message, finish_reason: chatFinish(answer), logprobs: null }
  return { id, object: 'chat.completion', created: CREATED, model, choices: [choice], usage: chatUsage(answer) }
}

function chatEvents(answer: Spoken): object[] {
  const { id, model, text } = answer
  const base = { id, object: 'chat.completion.chunk', created: CREATED, model }
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...base,
    choices: [{ index: 0, delta, finish_reason }],
  })
  return [
    chunk({ role: 'assistant', content: '' }),
    ...(text === '' ? [] : [chunk({ content: text })]),
    ...chatCalls(answer).map((call) => chunk({ tool_calls: [call] })),
    chunk({}, chatFinish(answer)),
    { ...base, choices: [], usage: chatUsage(answer) },
  ]
}

function responseItems({ id, text, calls }: Spoken): ResponseItem[] {
  const textPart = { type: 'output_text', text, annotations: [], logprobs: [] }
  const message = { type: 'message', id: `msg_${id}`, status: 'completed', role: 'assistant', content: [textPart] }
  return [
    ...(text === '' ? [] : [message]),
    ...calls.map(({ id: call_id, ...call }, index) => ({
      type: 'function_call',
      id: `fc_${id}_${index}`,
      call_id,
      ...call,
      status: 'completed',
    })),
  ]
}

interface ResponseItem {
  type: string
  id: string
  [name: string]: unknown
}

function responseWhole(answer: Spoken): object {
  const { id, model, usage, finishReason } = answer
  const isCut = CUT.test(finishReason) || finishReason === 'incomplete'
  return {
    id: `resp_${id}`,
    object: 'response',
    created_at: CREATED,
    model,
    error: null,
    instructions: null,
    metadata: {},
    parallel_tool_calls: true,
    temperature: 1,
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    status: isCut ? 'incomplete' : 'completed',
    incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
    output: responseItems(answer),
    usage: {
      input_tokens: usage.input,
      input_tokens_details: { cached_tokens: usage.cached },
      output_tokens: usage.output,
      output_tokens_details: { reasoning_tokens: usage.reasoning },
      total_tokens: usage.input + usage.output,
    },
  }
}

function responseEvents(answer: Spoken): object[] {
  const whole = responseWhole(answer) as { status: string }
  const events = responseItems(answer).flatMap((item, output_index): { type: string; [name: string]: unknown }[] => {
    const at = { item_id: item.id, output_index }
    const done = { type: 'response.output_item.done', output_index, item }
    const added = (open: object) => ({
      type: 'response.output_item.added',
      output_index,
      item: { ...item, status: 'in_progress', ...open },
    })
    if (item.type === 'function_call') {
      const { name, arguments: text } = item
      return [
        added({ arguments: '' }),
        { type: 'response.function_call_arguments.delta', ...at, delta: text },
        { type: 'response.function_call_arguments.done', ...at, name, arguments: text },
        done,
      ]
    }
    const place = { ...at, content_index: 0 }
    const textPart = { type: 'output_text', text: answer.text, annotations: [], logprobs: [] }
    return [
      added({ content: [] }),
      { type: 'response.content_part.added', ...place, part: { ...textPart, text: '' } },
      { type: 'response.output_text.delta', ...place, delta: answer.text, logprobs: [] },
      { type: 'response.output_text.done', ...place, text: answer.text, logprobs: [] },
      { type: 'response.content_part.done', ...place, part: textPart },
      done,
    ]
  })
  const begun = { ...whole, status: 'in_progress', output: [], usage: null, incomplete_details: null }
  return [
    { type: 'response.created', response: begun },
    ...events,
    { type: `response.${whole.status}`, response: whole },
  ].map((event, sequence_number) => ({ ...event, sequence_number }))
}

function messageStop({ finishReason, calls }: Spoken): string {
  if (CUT.test(finishReason)) return 'max_tokens'
  if (['refusal', 'pause_turn', 'stop_sequence'].includes(finishReason)) return finishReason
  return calls.length > 0 ? 'tool_use' : 'end_turn'
}

/** Anthropic counts cached tokens separately. */
function messageUsage({ usage: { input, output, cached } }: Spoken) {
  return {
    input_tokens: Math.max(0, input - cached),
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: 0,
    output_tokens: output,
  }
}

function messageWhole(answer: Spoken): object {
  const { id, model, text, calls } = answer
  const content = [
    ...(text === '' ? [] : [{ type: 'text', text, citations: null }]),
    ...calls.map((call) => ({ type: 'tool_use', id: call.id, name: call.name, input: inputOf(call.arguments) })),
  ]
  const base = { id: `msg_${id}`, type: 'message', role: 'assistant', model, stop_sequence: null }
  return { ...base, content, stop_reason: messageStop(answer), usage: messageUsage(answer) }
}

function inputOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return {}
  }
}

function messageEvents(answer: Spoken): object[] {
  const { text, calls } = answer
  const message = { ...messageWhole(answer), content: [], stop_reason: null }
  const usage = messageUsage(answer)
  const block = (index: number, content_block: object, delta: object) => [
    { type: 'content_block_start', index, content_block },
    { type: 'content_block_delta', index, delta },
    { type: 'content_block_stop', index },
  ]
  const texts = text === '' ? [] : [block(0, { type: 'text', text: '', citations: null }, { type: 'text_delta', text })]
  const uses = calls.map(({ id, name, arguments: partial_json }, index) =>
    block(texts.length + index, { type: 'tool_use', id, name, input: {} }, { type: 'input_json_delta', partial_json }),
  )
  return [
    { type: 'message_start', message: { ...message, usage: { ...usage, output_tokens: 1 } } },
    ...[...texts, ...uses].flat(),
    {
      type: 'message_delta',
      delta: { stop_reason: messageStop(answer), stop_sequence: null },
      usage: { output_tokens: usage.output_tokens },
    },
    { type: 'message_stop' },
  ]
}

function geminiWhole({ id, model, text, calls, finishReason, usage }: Spoken): object {
  const parts = [
    ...(text === '' ? [] : [{ text }]),
    ...calls.map((call) => ({ functionCall: { id: call.id, name: call.name, args: inputOf(call.arguments) } })),
  ]
  const reason = CUT.test(finishReason.toLowerCase()) ? 'MAX_TOKENS' : 'STOP'
  return {
    responseId: id,
    modelVersion: model,
    candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: reason }],
    usageMetadata: {
      promptTokenCount: usage.input,
      candidatesTokenCount: usage.output,
      cachedContentTokenCount: usage.cached,
      thoughtsTokenCount: usage.reasoning,
      totalTokenCount: usage.input + usage.output,
    },
  }
}
