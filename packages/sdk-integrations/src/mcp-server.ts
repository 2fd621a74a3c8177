/** The smallest MCP server that the frameworks' clients accept. It runs on loopback and has one tool that takes any object. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

interface Message {
  id?: number | string
  method: string
  params?: { protocolVersion?: string; arguments?: unknown }
}

export interface McpServer {
  url: string
  close(): Promise<void>
}

export async function startMcpServer(tool: string, act: (input: unknown) => string): Promise<McpServer> {
  const inputSchema = { type: 'object', properties: { order: { type: 'number' } } }

  function resultOf({ method, params = {} }: Message): object | undefined {
    if (method === 'initialize') {
      const { protocolVersion } = params
      return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'shop', version: '1' } }
    }
    if (method === 'tools/list') return { tools: [{ name: tool, description: 'Acts', inputSchema }] }
    if (method === 'tools/call') return { content: [{ type: 'text', text: act(params.arguments) }] }
    return undefined
  }

  const server = createServer((request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    void json(request).then((message) => {
      const { id } = message as Message
      if (id === undefined) return response.writeHead(202).end()
      const result = resultOf(message as Message)
      const answer = result ? { result } : { error: { code: -32_601, message: 'Method not found' } }
      response.writeHead(200, { 'content-type': 'application/json' })
      return response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
