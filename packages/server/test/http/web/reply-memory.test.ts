import assert from 'node:assert/strict'
import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import net from 'node:net'
import { test, type TestContext } from 'node:test'
import { event, startService, type Service } from '../../setup/service.ts'
import { eventually } from '../../setup/eventually.ts'

const MIB = 1_048_576
const LIMIT = 16 * MIB

/** A server with little memory for replies, and a run whose first page has almost 4 MiB. */
async function start(t: TestContext): Promise<Service> {
  const service = await startService({ requestTimeout: '1s', rateLimit: '1000000' }, Date.now, {}, { replies: LIMIT })
  t.after(() => service.close())
  const text = 'x'.repeat(250_000)
  for (let batch = 0; batch < 4; batch++) {
    const events = Array.from({ length: 4 }, () => event({ payload: { text } }))
    assert.equal((await service.record(events)).body.accepted, 4)
  }
  return service
}

/** The server's ends of connections, by the client's port. */
const served = new Map<number, net.Socket>()
subscribe('net.server.socket', (message) => {
  const { socket } = message as { socket: net.Socket }
  served.set(socket.remotePort ?? 0, socket)
})

/**
 * A connection that requests the page and reads nothing of the answer. Some kernels take all of it for such a client, others a
 * tenth: here, they take nothing.
 */
async function ask(t: TestContext, service: Service, key = service.apiKey): Promise<net.Socket> {
  const { hostname, port } = new URL(service.url)
  const socket = net.connect({ host: hostname, port: Number(port) })
  t.after(() => socket.destroy())
  // The server cuts the connection, which causes errors.
  socket.on('error', () => undefined)
  socket.pause()
  await once(socket, 'connect')
  const end = await eventually(() => served.get(socket.localPort ?? 0), 'the connection to be accepted')
  end._write = end._writev = () => undefined
  socket.write(`GET /openapi/v1/runs/run/events HTTP/1.1\r\nHost: tacho\r\nX-API-Key: ${key}\r\n\r\n`)
  return socket
}

async function bytesOf(service: Service): Promise<number> {
  const { text } = await service.call('/metrics')
  const [, bytes] = /^tacho_reply_memory_bytes (\d+)$/m.exec(text) ?? []
  assert.ok(bytes !== undefined)
  return Number(bytes)
}

test('unread replies take no more than their memory: further pages are rejected, small requests answered', async (t) => {
  const service = await start(t)
  const sockets = await Promise.all(Array.from({ length: 60 }, () => ask(t, service)))
  // While pages are built, the counted bytes stay within the limit.
  const refused = []
  for (let asked = 0; asked < 20 || refused.length === 0; asked++) {
    assert.ok((await bytesOf(service)) <= LIMIT)
    assert.equal((await service.call('/healthz')).status, 200)
    const answer = await service.api('/runs/run/events')
    if (answer.status === 503) refused.push(answer)
    else assert.equal(answer.status, 200)
  }
  const [first] = refused
  assert.equal(first?.headers.get('retry-after'), '1')
  assert.match(first?.text ?? '', /"code":"overloaded"/)
  for (const socket of sockets) socket.destroy()
  await eventually(async () => (await bytesOf(service)) === 0, 'the memory of replies to be freed')
  assert.equal((await service.api('/runs/run/events')).status, 200)
})

test('a key whose connections do not read is refused beyond its share; other keys get their pages', async (t) => {
  const service = await start(t)
  const other = await service.newKey({ scopes: ['usage:read'] })
  const answerTo = (key: string) => service.api('/runs/run/events', { headers: { 'x-api-key': key } })
  const flood = () => Promise.all(Array.from({ length: 8 }, () => ask(t, service)))
  await flood()
  const refused = await eventually(async () => {
    const answer = await answerTo(service.apiKey)
    return answer.status === 503 ? answer : null
  }, 'the flooding key to be refused')
  assert.equal(refused?.headers.get('retry-after'), '1')
  for (let asked = 0; asked < 10; asked++) {
    await flood()
    assert.equal((await answerTo(other)).status, 200)
  }
})

test('a connection that does not read its reply is closed, and its memory is freed', async (t) => {
  const service = await start(t)
  const sockets = await Promise.all(Array.from({ length: 20 }, () => ask(t, service)))
  await eventually(async () => (await bytesOf(service)) > 0, 'a reply in memory')
  // The client neither reads nor disconnects, so only the server can end the reply.
  await eventually(async () => (await bytesOf(service)) === 0, 'the memory of replies to be freed')
  assert.equal((await service.api('/runs/run/events')).status, 200)
  for (const socket of sockets) socket.destroy()
})
