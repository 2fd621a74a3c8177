/** A model server that answers as a test says, and stores the requests. */
import { createHash, hash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface AskedOfModel {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
  readonly bytes: number
  readonly sha256: string
  readonly body: Buffer
}

export type Script = (asked: AskedOfModel, response: ServerResponse, request: IncomingMessage) => void | Promise<void>

export interface ScriptedModel {
  readonly origin: string
  readonly asked: AskedOfModel[]
  /** Replaces the script. */
  script: Script
  close(): Promise<void>
}

/** Larger bodies are not stored, only their bytes are counted. */
const KEPT_BYTES = 8_388_608

export async function startScriptedModel(script: Script): Promise<ScriptedModel> {
  const asked: AskedOfModel[] = []
  const server = createServer({ maxHeaderSize: 65_536 }, (request, response) => {
    void (async () => {
      const pieces: Buffer[] = []
      let bytes = 0
      const sum = createHash('sha256')
      for await (const piece of request as AsyncIterable<Buffer>) {
        bytes += piece.length
        sum.update(piece)
        if (bytes <= KEPT_BYTES) pieces.push(piece)
      }
      const { method = '', url: path = '', headers, rawHeaders } = request
      const one = { method, path, headers, rawHeaders, bytes, sha256: sum.digest('hex'), body: Buffer.concat(pieces) }
      asked.push(one)
      await model.script(one, response, request)
    })().catch(() => response.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const model: ScriptedModel = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    script,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return model
}

export const sha256 = (bytes: Buffer | string): string => hash('sha256', bytes)

export function answerJson(
  response: ServerResponse,
  answer: unknown,
  status = 200,
  headers: Record<string, string> = {},
): void {
  const body = JSON.stringify(answer)
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...headers,
  })
  response.end(body)
}

/** One event for each item, with its name where it has a type. */
export function eventsOf(items: readonly unknown[], end = ''): string {
  const lines = items.map((item) => {
    const { type } = item as { type?: unknown }
    return `${typeof type === 'string' ? `event: ${type}\n` : ''}data: ${JSON.stringify(item)}\n\n`
  })
  return `${lines.join('')}${end}`
}

export function chatAnswer(text: string | null, calls: readonly { id: string; name: string; args: string }[] = []) {
  const toolCalls = calls.map(({ id, name, args }) => ({ id, type: 'function', function: { name, arguments: args } }))
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'gpt-5-2026',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: text, ...(toolCalls.length > 0 && { tool_calls: toolCalls }) },
        finish_reason: toolCalls.length > 0 ? 'tool_calls' : 'stop',
      },
    ],
    usage: {
      prompt_tokens: 100,
      completion_tokens: 20,
      total_tokens: 120,
      prompt_tokens_details: { cached_tokens: 64 },
      completion_tokens_details: { reasoning_tokens: 8 },
    },
  }
}
