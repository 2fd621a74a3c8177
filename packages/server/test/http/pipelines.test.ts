/** Requests that follow each other on one connection, whose answers a client does not read. On real sockets. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { LIMITS } from '@tacho/contract/limits.ts'
import { boundPipelines } from '../../src/http/pipelines.ts'
import { eventually } from '../setup/eventually.ts'
import { startService, type Service } from '../setup/service.ts'

const DOCUMENT = '/operator/v1/openapi.json'
const SCRIPT = '/docs/assets/swagger-ui-bundle.js'

async function connect(t: TestContext, url: string): Promise<net.Socket> {
  const { hostname, port } = new URL(url)
  const socket = net.connect({ host: hostname, port: Number(port) })
  t.after(() => socket.destroy())
  // The server cuts the connection, which causes errors.
  socket.on('error', () => undefined)
  socket.pause()
  await once(socket, 'connect')
  return socket
}

const requests = (path: string, count: number): string => `GET ${path} HTTP/1.1\r\nHost: tacho\r\n\r\n`.repeat(count)

async function metric(service: Service, name: string): Promise<number> {
  const { text } = await service.call('/metrics')
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1])
}

test('the requests of one connection that are under way are bounded; one more closes it', async (t) => {
  for (const count of [LIMITS.pipelinedRequests, LIMITS.pipelinedRequests + 1, 1_300]) {
    const held: ServerResponse[] = []
    let closed = 0
    const server = createServer((_request, response) => held.push(response))
    boundPipelines(server, () => (closed += 1))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    const socket = await connect(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    socket.write(requests('/', count))
    await eventually(() => held.length === LIMITS.pipelinedRequests, 'the bound to be reached')
    if (count > LIMITS.pipelinedRequests) {
      await eventually(() => held.every(({ destroyed }) => destroyed), 'the connection to be closed')
      assert.deepEqual([held.length, closed], [LIMITS.pipelinedRequests, 1])
    } else {
      // An answer that was read makes room.
      for (const response of held.splice(0)) response.end()
      socket.resume()
      socket.write(requests('/', count))
      await eventually(() => held.length === LIMITS.pipelinedRequests, 'the next requests')
      assert.equal(closed, 0)
      socket.destroy()
    }
  }
})

test('requests that a client sends ahead are answered in order', async (t) => {
  const service = await startService()
  t.after(() => service.close())
  const socket = await connect(t, service.url)
  const paths = ['/healthz', DOCUMENT, '/nothing', '/healthz', SCRIPT]
  socket.write(paths.map((path) => requests(path, 1)).join(''))
  let text = ''
  socket.setEncoding('latin1').on('data', (piece: string) => (text += piece))
  socket.resume()
  await eventually(() => text.split('HTTP/1.1 ').length > paths.length, 'all answers')
  const statuses = text.split('HTTP/1.1 ').map((answer) => answer.slice(0, 3))
  assert.deepEqual(statuses.slice(1, paths.length + 1), ['200', '200', '404', '200', '200'])
})

test('unread documents and files hold one copy in memory and no open file', async (t) => {
  const service = await startService()
  t.after(() => service.close())
  const sizes = new Map<string, number>()
  for (const path of [DOCUMENT, SCRIPT]) sizes.set(path, (await service.call(path)).text.length)
  const largest = Math.max(...sizes.values())
  const before = process.memoryUsage().arrayBuffers
  const sockets: net.Socket[] = []
  for (let n = 0; n < 20; n++) {
    const socket = await connect(t, service.url)
    socket.write(requests(n % 2 === 0 ? DOCUMENT : SCRIPT, LIMITS.pipelinedRequests))
    sockets.push(socket)
  }
  await eventually(async () => (await metric(service, 'tacho_reply_memory_bytes')) > 0, 'the requests to be counted')
  assert.ok(process.memoryUsage().arrayBuffers - before < 3 * largest)
  if (process.platform === 'linux') {
    const files = readdirSync('/proc/self/fd').map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`)
      } catch {
        return ''
      }
    })
    assert.deepEqual(
      files.filter((file) => file.includes('swagger-ui')),
      [],
    )
  }
  for (const socket of sockets) socket.destroy()
  await eventually(async () => (await metric(service, 'tacho_reply_memory_bytes')) === 0, 'the memory to be free')
})

test('small answers that wait for others count; an address beyond its share is cut off, keys are served', async (t) => {
  const service = await startService({}, Date.now, {}, { replies: 16 * 1_048_576 })
  t.after(() => service.close())
  const share = 4 * 1_048_576
  // The first answer is larger than what the kernels take for the client.
  const large = `${requests(SCRIPT, 4)}${requests('/healthz', LIMITS.pipelinedRequests - 4)}`
  const sockets: net.Socket[] = []
  let counted = 0
  while (counted + LIMITS.pipelinedRequests * 10_000 < share) {
    const socket = await connect(t, service.url)
    sockets.push(socket)
    socket.write(large)
    await eventually(async () => (await metric(service, 'tacho_reply_memory_bytes')) > counted, 'it to be counted')
    counted = await metric(service, 'tacho_reply_memory_bytes')
    assert.ok(counted <= share)
  }
  const one = await connect(t, service.url)
  one.write(large)
  // A paused client would not notice.
  const another = await connect(t, service.url)
  another.write(large)
  another.resume()
  await once(another, 'close')
  assert.ok((await metric(service, 'tacho_reply_memory_bytes')) <= share)
  assert.equal((await service.api('/runs')).status, 200)
})
