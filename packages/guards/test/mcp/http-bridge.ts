/** A minimal bridge from MCP over HTTP to a program on standard input and output, for the client of the conformance suite. */
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { json } from 'node:stream/consumers'

interface Message {
  id?: unknown
  method?: string
}

export async function bridge({ stdin, stdout }: ChildProcess): Promise<{ url: string; close: () => void }> {
  assert.ok(stdin && stdout)
  /** Requests of the client under way, the newest last. */
  const open = new Map<unknown, ServerResponse>()
  createInterface({ input: stdout }).on('line', (line) => {
    const { id, method } = JSON.parse(line) as Message
    const isAnswer = method === undefined
    // Notifications and questions belong to the newest request: the suite makes one at a time.
    const reply = isAnswer ? open.get(id) : [...open.values()].at(-1)
    reply?.write(`event: message\ndata: ${line}\n\n`)
    if (!isAnswer) return
    open.delete(id)
    reply?.end()
  })
  const server = createServer((request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    void json(request).then((body) => {
      const { id, method } = body as Message
      const isRequest = method !== undefined && id !== undefined
      if (isRequest) {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        open.set(id, response)
      } else response.writeHead(202).end()
      stdin.write(`${JSON.stringify(body)}\n`)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
