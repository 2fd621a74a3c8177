/** Requests that are answered before their body has arrived, and bodies in pieces that are too small. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request, type IncomingMessage } from 'node:http'
import net from 'node:net'
import { after, before, test, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { boundPieces } from '../../../src/http/web/connections.ts'
import { GrowingBuffer } from '../../../src/http/web/read-body.ts'
import { eventually } from '../../setup/eventually.ts'
import { event, startService, type Service } from '../../setup/service.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

async function connect(t: TestContext, { port }: { port: string | number } = new URL(service.url)) {
  const socket = net.connect({ host: '127.0.0.1', port: Number(port) })
  t.after(() => socket.destroy())
  const seen = { text: '', isClosed: false }
  socket.on('error', () => undefined).on('close', () => (seen.isClosed = true))
  socket.setEncoding('latin1').on('data', (piece: string) => (seen.text += piece))
  await once(socket, 'connect')
  return { socket, seen }
}

const head = (path: string, headers: Record<string, string>): string =>
  `POST ${path} HTTP/1.1\r\nHost: tacho\r\n${Object.entries({ 'content-type': 'application/json', ...headers })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`

const BATCH = '/openapi/v1/events/batch'
const CHUNKED = { 'transfer-encoding': 'chunked' }

test('a refused upload of unknown or great length is answered, and its connection closed', async (t) => {
  const refused: [path: string, headers: Record<string, string>, status: number][] = [
    [BATCH, CHUNKED, 401],
    [BATCH, { 'content-length': '100000000' }, 401],
    [BATCH, { 'x-api-key': service.apiKey, 'content-length': '100000000' }, 413],
    ['/openapi/v1/otlp/v1/traces', CHUNKED, 401],
    ['/operator/v1/workspaces', CHUNKED, 401],
    ['/operator/v1/nothing', CHUNKED, 404],
    ['/healthz', CHUNKED, 405],
    ['/%', CHUNKED, 400],
    ['/mcp', CHUNKED, 401],
  ]
  for (const [path, headers, status] of refused) {
    const { socket, seen } = await connect(t)
    // The end of the body never arrives.
    socket.write(`${head(path, headers)}${'1\r\n \r\n'.repeat(100)}`)
    await eventually(() => seen.isClosed, `${path} to be closed`)
    assert.match(seen.text, new RegExp(`^HTTP/1.1 ${status} `), path)
    assert.match(seen.text, /\r\nconnection: close\r\n/i, path)
    assert.match(seen.text, /"requestId"/, path)
  }
})

test('a client that sends a large body before it reads still gets its answer', async () => {
  for (const [key, status] of [
    ['none', 401],
    [service.apiKey, 413],
  ] as const) {
    for (const more of [{ 'content-length': 5_000_000 }, CHUNKED]) {
      const headers = { 'x-api-key': key, 'content-type': 'application/json', ...more }
      const sent = request(`${service.url}${BATCH}`, { method: 'POST', headers, agent: false })
      const replied = once(sent, 'response') as Promise<[IncomingMessage]>
      sent.end(Buffer.alloc(5_000_000, ' '))
      const [reply] = await replied
      assert.equal(reply.statusCode, status)
      let text = ''
      for await (const piece of reply.setEncoding('utf8')) text += String(piece)
      assert.match(text, /"requestId"/)
    }
  }
})

test('a refused request with a short body keeps its connection', async (t) => {
  const { socket, seen } = await connect(t)
  socket.write(`${head(BATCH, { 'content-length': '100000' })}${' '.repeat(100_000)}`)
  await eventually(() => seen.text.includes('"requestId"'), 'the first answer')
  socket.write('GET /healthz HTTP/1.1\r\nHost: tacho\r\n\r\n')
  await eventually(() => / 200 OK/.test(seen.text), 'the second answer')
  assert.ok(!seen.isClosed)
})

/** A body of that many pieces of one byte each. */
function pieces(count: number, content: Buffer): string {
  const body = Buffer.alloc(count, ' ')
  content.copy(body)
  return `${[...body].map((byte) => `1\r\n${String.fromCharCode(byte)}\r\n`).join('')}0\r\n\r\n`
}

/** The maximum for this body: 4,096 pieces, and one more for every 16 bytes. */
const MOST_PIECES = 4_369

test('a body may come in many small pieces, but not in any number', async (t) => {
  const json = Buffer.from(JSON.stringify([event()]))
  const ways: [path: string, headers: Record<string, string>, content: Buffer, status: number][] = [
    [BATCH, {}, json, 200],
    ['/openapi/v1/otlp/v1/traces', {}, Buffer.from('{}'), 200],
  ]
  for (const [path, more, content, status] of ways) {
    for (const [count, expected] of [
      [MOST_PIECES, status],
      [MOST_PIECES + 1, 400],
      [100_000, 400],
    ] as const) {
      const { socket, seen } = await connect(t)
      socket.write(head(path, { 'x-api-key': service.apiKey, ...CHUNKED, ...more }) + pieces(count, content))
      await eventually(() => /\r\n\r\n./s.test(seen.text), `${path} to be answered`)
      assert.match(seen.text, new RegExp(`^HTTP/1.1 ${expected} `), `${count} pieces to ${path}`)
      if (expected === 400) assert.match(seen.text, /too many small pieces/)
    }
  }
})

test('pieces of a compressed body and of one without a key count, too', async (t) => {
  const packed = gzipSync(Buffer.alloc(100_000, ' '), { level: 0 })
  for (const [path, headers] of [
    [BATCH, { 'x-api-key': service.apiKey, 'content-encoding': 'gzip' }],
    ['/operator/v1/sign-in', {}],
  ] as const) {
    const { socket, seen } = await connect(t)
    const content = path === BATCH ? packed : Buffer.from('{}')
    socket.write(head(path, { ...headers, ...CHUNKED }) + pieces(MOST_PIECES + 2_000, content), 'latin1')
    await eventually(() => /\r\n\r\n./s.test(seen.text), `${path} to be answered`)
    assert.match(seen.text, /too many small pieces/, path)
  }
})

test('after too many pieces of a body, the parser skips the rest of what it has read', async (t) => {
  let pushes = 0
  const server = createServer((request, response) => {
    boundPieces(request)
    const { push } = request
    request.push = (...given) => {
      pushes += 1
      return push.apply(request, given)
    }
    setImmediate(() => response.end())
  }).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const { socket, seen } = await connect(t, server.address() as net.AddressInfo)
  socket.write(head('/', CHUNKED) + pieces(9_000, Buffer.alloc(0)))
  await eventually(() => seen.text !== '', 'the answer')
  assert.ok(pushes > MOST_PIECES - 1_000 && pushes < MOST_PIECES + 100, `${pushes} pieces`)
})

test('what a connection sends behind a body that was cut is not done, and later connections lose nothing', async (t) => {
  const key = { 'x-api-key': service.apiKey }
  const batchOf = (runId: string) => JSON.stringify([event({ runId })])
  const whole = (runId: string) => {
    const body = batchOf(runId)
    return `${head(BATCH, { ...key, 'content-length': `${body.length}` })}${body}`
  }
  // Three refusals: no key; an unknown key, after its lookup; too many pieces.
  for (const headers of [{}, { 'x-api-key': 'unknown' }, key]) {
    const { socket, seen } = await connect(t)
    const text = head(BATCH, { ...headers, ...CHUNKED }) + pieces(MOST_PIECES + 1, Buffer.from(batchOf('cut')))
    socket.write(text + whole('behind'))
    const after = Array.from({ length: 5 }, (_, index) => service.record([event({ runId: `after-${index}` })]))
    for (const { status, text: said } of await Promise.all(after)) assert.equal(status, 200, said)
    await eventually(() => seen.isClosed, 'the connection to be closed')
    assert.equal(seen.text.split('HTTP/1.1 ').length, 2, seen.text)
    assert.match(seen.text, /^HTTP\/1.1 40[01] /)
  }
  for (const runId of ['cut', 'behind']) assert.equal((await service.api(`/runs/${runId}`)).status, 404, runId)
})

test('a body takes at most twice its bytes, however small its pieces are', () => {
  const body = new GrowingBuffer(1_000_000)
  const sent = Buffer.from(Array.from({ length: 10_000 }, (_, n) => n % 251))
  for (let at = 0; at < sent.length; at++) {
    // A view of a much larger block of memory, as Node's parser makes it.
    body.append(sent.subarray(at, at + 1))
    assert.ok(body.capacity <= 2 * body.size)
  }
  assert.deepEqual(body.content(), sent)
  // The buffer never grows beyond the limit.
  const full = new GrowingBuffer(100)
  for (let n = 0; n < 10; n++) full.append(Buffer.alloc(10))
  assert.deepEqual([full.size, full.capacity], [100, 100])
})
