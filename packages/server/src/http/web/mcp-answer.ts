import { createOperatorClient } from '@tacho/client/operator.ts'
import { createTachoServer } from '@tacho/mcp/server.ts'
import { createMcpHandler } from '@modelcontextprotocol/server'
import type { FastifyInstance, FastifyRequest } from 'fastify'

const NO_KEEP_ALIVE = 0
/** There is nothing to subscribe to. The library's own error would tell clients to try again. */
const SUBSCRIBE = 'subscriptions/listen'
const METHOD_NOT_FOUND = { code: -32_601, message: 'Method not found' }

export interface McpMessage {
  message: object
  token: string
  version: string
  end: AbortSignal
  pause: (milliseconds: number) => Promise<unknown>
}

export async function answerMcp(
  app: FastifyInstance,
  request: FastifyRequest,
  { message, token, version, end, pause }: McpMessage,
) {
  const { id, method } = message as { id?: unknown; method?: unknown }
  if (method === SUBSCRIBE && (typeof id === 'string' || typeof id === 'number')) {
    const text = JSON.stringify({ jsonrpc: '2.0', id, error: METHOD_NOT_FOUND })
    return { status: 404, type: 'application/json', text }
  }
  const client = createOperatorClient({ url: '', token, fetch: fetchFrom(app, request.ip, end) })
  let failure: Error | null = null
  const handler = createMcpHandler(() => createTachoServer(client, version, pause), {
    onerror: (error) => (failure = error),
    keepAliveMs: NO_KEEP_ALIVE,
    maxSubscriptions: 0,
  })
  const headers = Object.entries(request.headers).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, value] as [string, string]] : [],
  )
  const mcpRequest = new Request('http://localhost/mcp', { method: 'POST', headers })
  const response = await handler.fetch(mcpRequest, { parsedBody: message })
  const { status } = response
  if (status >= 500) request.log.error({ requestId: request.id, err: failure }, 'unexpected error')
  return { status, type: response.headers.get('content-type'), text: await response.text() }
}

/** Sends each read through the API, so it has separate checks of token and role, limits, and a line in the log. */
function fetchFrom(app: FastifyInstance, remoteAddress: string, end: AbortSignal): typeof globalThis.fetch {
  return async (url, { method, headers, body, signal } = {}) => {
    const reply = await app.inject({
      method: method as 'GET' | 'POST',
      url: url as string,
      headers: Object.fromEntries(new Headers(headers)),
      remoteAddress,
      signal: signal ? AbortSignal.any([signal, end]) : end,
      ...(typeof body === 'string' ? { payload: body } : {}),
    })
    const { 'retry-after': retryAfter } = reply.headers
    return new Response(reply.body, {
      status: reply.statusCode,
      ...(retryAfter === undefined ? {} : { headers: { 'retry-after': String(retryAfter) } }),
    })
  }
}
