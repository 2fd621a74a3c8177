/** MCP over HTTP behind the guard: numbers, errors and streams reach the client as the server sent them. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { eventually } from '../../../server/test/setup/eventually.ts'
import type { ServerConnection } from '../../src/mcp/connection.ts'
import { connectServer } from '../../src/mcp/http-server.ts'
import type { LongLine } from '../../src/mcp/lines.ts'

const NUMBERS = '{"big":9007199254740993,"huge":1e400,"small":0.1000000000000000000001,"plain":[1,0.5,-3e2]}'
const READ = '{"big":9007199254740993,"huge":1e400,"small":0.1000000000000000000001,"plain":[1,0.5,-300]}'
const META = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' }

interface Request {
  id: number
  method: string
}

const closed: string[] = []
const answers = new Map<string, (reply: ServerResponse, request: Request) => void>([
  ['json', (reply, { id }) => json(reply, 200, `{"jsonrpc":"2.0","id":${id},"result":{"n":${NUMBERS}}}`)],
  ['pretty', (reply, { id }) => json(reply, 200, `{"jsonrpc":"2.0",\n"id":${id},\n"result":\n{"n":${NUMBERS}}}\n`)],
  [
    'events',
    (reply, { id }) => {
      reply.writeHead(200, { 'content-type': 'text/event-stream' })
      const text = `{"jsonrpc":"2.0","id":${id},"result":{"text":"say \\"9007199254740993\\" \\\\","n":${NUMBERS}}}`
      // The event arrives in pieces, and its id is not JSON.
      const whole = `id: 9007199254740993\nevent: message\ndata: ${text}\n\n`
      reply.write(whole.slice(0, 150))
      setImmediate(() => reply.end(whole.slice(150)))
    },
  ],
  ['bad', (reply, { id }) => json(reply, 400, error(id, -32_602, 'No such tool: 9007199254740993.'))],
  ['missing', (reply, { id }) => json(reply, 404, error(id, -32_601, 'Method not found.'))],
  ['other', (reply) => json(reply, 400, error(7_777, -32_602, 'Of another request.'))],
  ['page', (reply) => void reply.writeHead(502, { 'content-type': 'text/html' }).end('<p>secret</p>')],
  ['ends', (reply) => void reply.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n')],
  [
    'hangs',
    (reply, { method }) => {
      reply.writeHead(200, { 'content-type': 'text/event-stream' })
      reply.write(': waiting\n\n')
      reply.once('close', () => closed.push(method))
    },
  ],
])

function json(reply: ServerResponse, status: number, text: string): void {
  reply.writeHead(status, { 'content-type': 'application/json' }).end(text)
}

function error(id: number, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } })
}

const bodies: string[] = []
const http = createServer((request, reply) => {
  if (request.method !== 'POST') return void reply.writeHead(405).end()
  let text = ''
  request.on('data', (part: Buffer) => (text += part.toString()))
  request.on('end', () => {
    bodies.push(text)
    const message = JSON.parse(text) as Request
    const answer = answers.get(message.method)
    if (answer) answer(reply, message)
    else reply.writeHead(202).end()
  })
})

let server: ServerConnection
let lines: AsyncIterator<Buffer | LongLine>
before(async () => {
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const { port } = http.address() as AddressInfo
  server = await connectServer(new URL(`http://127.0.0.1:${port}/mcp`), {}, () => undefined)
  lines = server.lines[Symbol.asyncIterator]()
})
after(async () => {
  server.close()
  await server.ended
  http.closeAllConnections()
  http.close()
})

let ids = 0
async function send(method: string): Promise<number> {
  const id = ++ids
  await server.send(JSON.stringify({ jsonrpc: '2.0', id, method, params: { _meta: META } }))
  return id
}

async function answerOf(method: string): Promise<string> {
  const id = await send(method)
  const { value } = (await lines.next()) as { value: Buffer }
  return String(value).replace(`"id":${id}`, '"id":0')
}

test('numbers in an answer keep their digits: JSON, JSON over several lines, events', async () => {
  assert.equal(await answerOf('json'), `{"jsonrpc":"2.0","id":0,"result":{"n":${READ}}}`)
  assert.equal(await answerOf('pretty'), `{"jsonrpc":"2.0","id":0,"result":{"n":${READ}}}`)
  const events = `{"jsonrpc":"2.0","id":0,"result":{"text":"say \\"9007199254740993\\" \\\\","n":${READ}}}`
  assert.equal(await answerOf('events'), events)
})

test('an error that comes with status 400 or 404 keeps its code and text', async () => {
  assert.equal(await answerOf('bad'), error(0, -32_602, 'No such tool: 9007199254740993.'))
  assert.equal(await answerOf('missing'), error(0, -32_601, 'Method not found.'))
  assert.equal(await answerOf('other'), error(0, -32_000, 'The MCP server failed: status 400.'))
  assert.equal(await answerOf('page'), error(0, -32_000, 'The MCP server failed: status 502.'))
})

test('a stream that ends without an answer is an error, so its client does not wait', async () => {
  const text = 'The MCP server failed: its stream ended without an answer.'
  assert.equal(await answerOf('ends'), error(0, -32_000, text))
})

test('a cancelled request of 2026-07-28 closes its stream; the server gets no notification', async () => {
  const id = await send('hangs')
  await eventually(() => bodies.some((body) => body.includes('"hangs"')), 'the request')
  const params = { requestId: id }
  await server.send(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params }))
  await eventually(() => closed.includes('hangs'), 'the end of the stream')
  assert.equal(await answerOf('json'), `{"jsonrpc":"2.0","id":0,"result":{"n":${READ}}}`)
  assert.ok(!bodies.some((body) => body.includes('notifications/cancelled')))
})

test('an address that nobody listens at is named with the cause', async () => {
  const nowhere = await connectServer(new URL('http://127.0.0.1:9/mcp'), {}, () => undefined)
  await nowhere.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { _meta: META } }))
  const { value } = (await nowhere.lines[Symbol.asyncIterator]().next()) as { value: Buffer }
  assert.equal(String(value), error(1, -32_000, 'The MCP server failed: ECONNREFUSED 127.0.0.1:9.'))
  nowhere.close()
  await nowhere.ended
})

for (const status of [404, 400]) {
  test(`a server that started anew gets the greeting again, if it answers an old session with ${status}`, async (t) => {
    let session = 1
    const methods: string[] = []
    const restarting = createServer((request, reply) => {
      if (request.method !== 'POST') return void reply.writeHead(405).end()
      let text = ''
      request.on('data', (part: Buffer) => (text += part.toString()))
      request.on('end', () => {
        const { id, method } = JSON.parse(text) as Request
        methods.push(method)
        if (method === 'initialize') {
          reply.setHeader('mcp-session-id', `s-${session}`)
          const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'x', version: '1' } }
          return json(reply, 200, JSON.stringify({ jsonrpc: '2.0', id, result }))
        }
        if (request.headers['mcp-session-id'] !== `s-${session}`) {
          return json(reply, status, error(id, -32_000, 'Bad Request: No valid session ID provided'))
        }
        if (id === undefined) reply.writeHead(202).end()
        else json(reply, 200, `{"jsonrpc":"2.0","id":${id},"result":{}}`)
      })
    }).listen(0, '127.0.0.1')
    await once(restarting, 'listening')
    t.after(() => restarting.close())
    const { port } = restarting.address() as AddressInfo
    const guarded = await connectServer(new URL(`http://127.0.0.1:${port}/mcp`), {}, () => undefined)
    const its = guarded.lines[Symbol.asyncIterator]()
    const ask = async (id: number, method: string) => {
      const greeting = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
      await guarded.send(JSON.stringify({ jsonrpc: '2.0', id, method, params: method === 'ping' ? {} : greeting }))
      return String(((await its.next()) as { value: Buffer }).value)
    }
    assert.match(await ask(1, 'initialize'), /protocolVersion/)
    assert.match(await ask(2, 'ping'), /"result":\{\}/)
    session = 2
    assert.match(await ask(3, 'ping'), /"id":3,"result":\{\}/)
    assert.match(await ask(4, 'ping'), /"id":4,"result":\{\}/)
    const again = ['ping', 'initialize', 'notifications/initialized', 'ping', 'ping']
    assert.deepEqual(methods, ['initialize', 'ping', ...again])
    guarded.close()
    await guarded.ended
  })
}
