/**
 * A model that asks for the given tools, one after another, and then says "Done.". It has the APIs of Anthropic Messages,
 * OpenAI Responses and Chat Completions, and Gemini, streamed.
 */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

export interface ToolUse {
  readonly name: string
  /** The input of the call, or a function that makes it from the outputs of earlier calls. */
  readonly input: object | ((outputs: readonly string[]) => object)
}

interface Part {
  type: string
  content?: unknown
  output?: unknown
}

export interface ModelServer {
  url: string
  /** Outputs of the tools that the model received. */
  outputs: () => readonly string[]
  close: () => void
}

export async function startModel(uses: readonly ToolUse[]): Promise<ModelServer> {
  let outputs: string[] = []
  const server = createServer((request, response) => {
    void (async () => {
      const body = request.method === 'POST' ? ((await json(request)) as Record<string, unknown>) : {}
      const reply = REPLIES.find(([part]) => request.url?.includes(part))?.[1]
      if (!reply || request.url?.includes('count_tokens')) return void response.writeHead(404).end('{}')
      const seen = outputsOf(body)
      if (seen.length > 0) outputs = seen
      const use = uses[seen.length]
      const input = typeof use?.input === 'function' ? use.input(seen) : use?.input
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      reply(response, seen.length, use && { name: use.name, input: JSON.stringify(input) })
      response.end()
    })().catch(() => response.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    outputs: () => outputs,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

function outputsOf(body: Record<string, unknown>): string[] {
  const messages = (body['messages'] ?? []) as { role: string; content: unknown }[]
  const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? (content as Part[]) : []))
  const results = parts.filter(({ type }) => type === 'tool_result').map(({ content }) => content)
  const items = ((body['input'] ?? []) as Part[]).filter(({ type }) => type.endsWith('_output'))
  const chat = messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
  const contents = (body['contents'] ?? []) as { parts: { functionResponse?: { response: unknown } }[] }[]
  const gemini = contents.flatMap(({ parts }) =>
    parts.flatMap(({ functionResponse }) => functionResponse?.response ?? []),
  )
  return [...results, ...items.map(({ output }) => output), ...chat, ...gemini].map((each) => JSON.stringify(each))
}

interface Asked {
  name: string
  input: string
}

type Reply = (response: ServerResponse, turn: number, use: Asked | undefined) => void

const send = (response: ServerResponse, event: { type: string }): void =>
  void response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)

const sendData = (response: ServerResponse, data: object): void =>
  void response.write(`data: ${JSON.stringify(data)}\n\n`)

const REPLIES: readonly (readonly [string, Reply])[] = [
  [
    '/v1/messages',
    (response, turn, use) => {
      const usage = { input_tokens: 1, output_tokens: 1 }
      const message = { id: `msg_${turn}`, type: 'message', role: 'assistant', model: 'scripted', content: [], usage }
      const block = use
        ? { type: 'tool_use', id: `toolu_${turn}`, name: use.name, input: {} }
        : { type: 'text', text: '' }
      const delta = use ? { type: 'input_json_delta', partial_json: use.input } : { type: 'text_delta', text: 'Done.' }
      const events = [
        { type: 'message_start', message: { ...message, stop_reason: null, stop_sequence: null } },
        { type: 'content_block_start', index: 0, content_block: block },
        { type: 'content_block_delta', index: 0, delta },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: use ? 'tool_use' : 'end_turn', stop_sequence: null }, usage },
        { type: 'message_stop' },
      ]
      for (const event of events) send(response, event)
    },
  ],
  [
    '/v1/responses',
    (response, turn, use) => {
      const call = { type: 'function_call', id: `fc_${turn}`, call_id: `call_${turn}` }
      const text = [{ type: 'output_text', text: 'Done.' }]
      const item = use
        ? { ...call, name: use.name, arguments: use.input }
        : { type: 'message', id: `m_${turn}`, role: 'assistant', content: text }
      const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 }
      send(response, { type: 'response.created', response: { id: `resp_${turn}` } } as { type: string })
      send(response, { type: 'response.output_item.done', item } as { type: string })
      send(response, { type: 'response.completed', response: { id: `resp_${turn}`, usage } } as { type: string })
    },
  ],
  [
    '/chat/completions',
    (response, turn, use) => {
      const call = use && {
        index: 0,
        id: `call_${turn}`,
        type: 'function',
        function: { name: use.name, arguments: use.input },
      }
      const delta = { role: 'assistant', ...(call ? { tool_calls: [call] } : { content: 'Done.' }) }
      const common = { id: `chat_${turn}`, object: 'chat.completion.chunk', created: 1, model: 'scripted' }
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
      sendData(response, { ...common, choices: [{ index: 0, delta, finish_reason: null }] })
      sendData(response, {
        ...common,
        choices: [{ index: 0, delta: {}, finish_reason: call ? 'tool_calls' : 'stop' }],
        usage,
      })
      response.write('data: [DONE]\n\n')
    },
  ],
  [
    ':streamGenerateContent',
    (response, _turn, use) => {
      const part = use
        ? { functionCall: { name: use.name, args: JSON.parse(use.input) as unknown } }
        : { text: 'Done.' }
      const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 }
      const candidates = [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }]
      sendData(response, { candidates, usageMetadata })
    },
  ],
]
