/**
 * A scripted model on loopback that speaks the wire formats of OpenAI (chat completions and responses) and Anthropic
 * (messages), whole and as server-sent events. Tests provide its answers, and can read the requests.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Answer {
  text?: string
  /** `text` is sent in place of the JSON of `input`. */
  toolCalls?: { name: string; input: unknown; text?: string }[]
  /** More items of a response, for example the call of a shell. */
  items?: { id: string; [name: string]: unknown }[]
  /** Default: input 20, of which 5 are cached, and output 10. */
  usage?: { input: number; output: number; cached: number }
  /** Replies with an error of this status. */
  status?: number
  /** The length limit ended the answer. */
  isLong?: boolean
  /** After half of the stream, the server ends the connection, sends an error, or sends nothing more. */
  half?: 'cut' | 'error' | 'open'
}

export interface ModelRequest {
  path: string
  body: { model?: string; stream?: boolean; [name: string]: unknown }
}

export interface ModelServer {
  url: string
  requests: ModelRequest[]
  close(): Promise<void>
}

type Wire = (
  answer: Required<Pick<Answer, 'text' | 'toolCalls' | 'items' | 'usage' | 'isLong'>>,
  model: string,
  id: string,
) => WireAnswer

interface WireAnswer {
  whole: object
  /** Data of the events. The `event` name of each is its `type`. */
  chunks: object[]
  end?: string
}

const WIRES = new Map<string, Wire>([
  ['/v1/chat/completions', chatCompletions],
  ['/v1/responses', responses],
  ['/v1/messages', messages],
])

/** `answer` is called once for each request to a model. */
export async function startModelServer(answer: (request: ModelRequest) => Answer): Promise<ModelServer> {
  const requests: ModelRequest[] = []
  const server = createServer((request, response) => {
    void readJson(request).then((body) => {
      const path = new URL(request.url ?? '/', 'http://model').pathname
      const wire = WIRES.get(path)
      if (!wire) return reply(response, 404, { error: { type: 'not_found_error', message: `No ${path} here` } })
      const asked = { path, body }
      requests.push(asked)
      return send(response, wire, asked, answer(asked), requests.length)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** A script that returns these answers in turn, then repeats the last one. */
export function inTurn(...answers: Answer[]): () => Answer {
  let next = 0
  return () => answers[Math.min(next++, answers.length - 1)] ?? {}
}

function send(response: ServerResponse, wire: Wire, { body }: ModelRequest, answer: Answer, count: number): void {
  if (answer.status !== undefined) {
    const error = { type: 'invalid_request_error', code: 'scripted', message: 'The script says no' }
    return reply(response, answer.status, { type: 'error', error })
  }
  const { text = '', toolCalls = [], items = [], isLong = false, usage = { input: 20, output: 10, cached: 5 } } = answer
  const { whole, chunks, end } = wire(
    { text, toolCalls, items, usage, isLong },
    body.model ?? 'scripted',
    String(count),
  )
  if (body.stream !== true) return reply(response, 200, whole)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const { half } = answer
  const sent = half ? chunks.slice(0, Math.ceil(chunks.length / 2)) : chunks
  const fault = { code: 'overloaded', message: 'The model is overloaded' }
  const error = { type: 'overloaded_error', ...fault }
  if (half === 'error') sent.push('type' in (chunks[0] ?? {}) ? { type: 'error', ...fault, error } : { error })
  for (const chunk of sent) {
    const { type } = chunk as { type?: string }
    response.write(`${type === undefined ? '' : `event: ${type}\n`}data: ${JSON.stringify(chunk)}\n\n`)
  }
  if (half === 'cut') setImmediate(() => response.destroy())
  else if (half !== 'open') response.end(end)
}

function reply(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function readJson(request: IncomingMessage): Promise<ModelRequest['body']> {
  const parts: Buffer[] = []
  for await (const requestPart of request) parts.push(requestPart as Buffer)
  const text = Buffer.concat(parts).toString()
  return text === '' ? {} : (JSON.parse(text) as ModelRequest['body'])
}

function chatCompletions(
  { text, toolCalls, usage, isLong }: Parameters<Wire>[0],
  model: string,
  id: string,
): WireAnswer {
  const calls = toolCalls.map(({ name, input, text: json = JSON.stringify(input) }, index) => ({
    index,
    id: `call_${id}_${index}`,
    type: 'function',
    function: { name, arguments: json },
  }))
  const finish = isLong ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop'
  const used = {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cached },
  }
  const base = { id: `chatcmpl-${id}`, created: 1_790_000_000, model }
  const message = {
    role: 'assistant',
    content: text === '' ? null : text,
    refusal: null,
    ...(calls.length > 0 && { tool_calls: calls.map(({ index: _, ...call }) => call) }),
  }
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...base,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, finish_reason }],
  })
  return {
    whole: {
      ...base,
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason: finish, logprobs: null }],
      usage: used,
    },
    chunks: [
      chunk({ role: 'assistant', content: '' }),
      ...pieces(text).map((content) => chunk({ content })),
      ...calls.map((call) => chunk({ tool_calls: [call] })),
      chunk({}, finish),
      { ...base, object: 'chat.completion.chunk', choices: [], usage: used },
    ],
    end: 'data: [DONE]\n\n',
  }
}

function responses(
  { text, toolCalls, items, usage, isLong }: Parameters<Wire>[0],
  model: string,
  id: string,
): WireAnswer {
  const contentPart = { type: 'output_text', text, annotations: [], logprobs: [] }
  const message = { type: 'message', id: `msg_${id}`, status: 'completed', role: 'assistant', content: [contentPart] }
  const calls = toolCalls.map(({ name, input, text: json = JSON.stringify(input) }, index) => ({
    type: 'function_call',
    id: `fc_${id}_${index}`,
    call_id: `call_${id}_${index}`,
    name,
    arguments: json,
    status: isLong && index === toolCalls.length - 1 ? 'incomplete' : 'completed',
  }))
  const output = [...(text === '' ? [] : [message]), ...calls, ...items]
  const base = {
    id: `resp_${id}`,
    object: 'response',
    created_at: 1_790_000_000,
    model,
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    parallel_tool_calls: true,
    temperature: 1,
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
  }
  const begun = { ...base, status: 'in_progress', output: [], usage: null }
  const whole = {
    ...base,
    status: isLong ? 'incomplete' : 'completed',
    incomplete_details: isLong ? { reason: 'max_output_tokens' } : null,
    output,
    usage: {
      input_tokens: usage.input,
      input_tokens_details: { cached_tokens: usage.cached },
      output_tokens: usage.output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: usage.input + usage.output,
    },
  }
  const at = { item_id: message.id, output_index: 0, content_index: 0 }
  const chunks = [
    { type: 'response.created', response: begun },
    ...(text === ''
      ? []
      : [
          {
            type: 'response.output_item.added',
            output_index: 0,
            item: { ...message, status: 'in_progress', content: [] },
          },
          { type: 'response.content_part.added', ...at, part: { ...contentPart, text: '' } },
          ...pieces(text).map((delta) => ({ type: 'response.output_text.delta', ...at, delta, logprobs: [] })),
          { type: 'response.output_text.done', ...at, text, logprobs: [] },
          { type: 'response.content_part.done', ...at, part: contentPart },
          { type: 'response.output_item.done', output_index: 0, item: message },
        ]),
    ...calls.flatMap((item, index) => {
      const where = { item_id: item.id, output_index: output.indexOf(item) }
      return [
        { type: 'response.output_item.added', output_index: where.output_index, item: { ...item, arguments: '' } },
        { type: 'response.function_call_arguments.delta', ...where, delta: item.arguments },
        {
          type: 'response.function_call_arguments.done',
          ...where,
          name: calls[index]?.name,
          arguments: item.arguments,
        },
        { type: 'response.output_item.done', output_index: where.output_index, item },
      ]
    }),
    { type: isLong ? 'response.incomplete' : 'response.completed', response: whole },
  ]
  return { whole, chunks: chunks.map((chunk, sequence_number) => ({ ...chunk, sequence_number })) }
}

function messages({ text, toolCalls, usage, isLong }: Parameters<Wire>[0], model: string, id: string): WireAnswer {
  const used = {
    input_tokens: usage.input - usage.cached,
    cache_read_input_tokens: usage.cached,
    cache_creation_input_tokens: 0,
    output_tokens: usage.output,
  }
  const blocks = [
    ...(text === '' ? [] : [{ type: 'text', text, citations: null }]),
    ...toolCalls.map(({ name, input, text: json }, index) => ({
      type: 'tool_use',
      id: `toolu_${id}_${index}`,
      name,
      input,
      json: json ?? JSON.stringify(input),
    })),
  ]
  const stop_reason = isLong ? 'max_tokens' : toolCalls.length > 0 ? 'tool_use' : 'end_turn'
  const base = { id: `msg_${id}`, type: 'message', role: 'assistant', model, stop_sequence: null }
  return {
    whole: {
      ...base,
      content: blocks.map(({ json: _, ...block }: { type: string; json?: string }) => block),
      stop_reason,
      usage: used,
    },
    chunks: [
      {
        type: 'message_start',
        message: { ...base, content: [], stop_reason: null, usage: { ...used, output_tokens: 1 } },
      },
      ...blocks.flatMap((block, index) => {
        const { json = '', ...blockFields } = block as { json?: string; text?: string }
        const start = 'text' in block ? { ...blockFields, text: '' } : { ...blockFields, input: {} }
        const deltas =
          'text' in block
            ? pieces(block.text).map((piece) => ({ type: 'text_delta', text: piece }))
            : [{ type: 'input_json_delta', partial_json: json }]
        return [
          { type: 'content_block_start', index, content_block: start },
          ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
          { type: 'content_block_stop', index },
        ]
      }),
      { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: usage.output } },
      { type: 'message_stop' },
    ],
  }
}

/** Splits a text into the pieces that a stream sends. */
function pieces(text: string): string[] {
  return text.match(/[\s\S]{1,4}/g) ?? []
}
