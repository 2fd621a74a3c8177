/** Requests that follow each other on one connection, whose answers a client does not read. On real sockets. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { answerLast, boundPipelines } from '../../../src/http/web/connections.ts'
import { eventually } from '../../setup/eventually.ts'
import { event, startService } from '../../setup/service.ts'
import { collectGarbage } from '../../setup/heap-growth.ts'

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

test('a request waits for the answers before it; one beyond the bound closes its connection', async (t) => {
  for (const count of [LIMITS.pipelinedRequests, LIMITS.pipelinedRequests + 1, 1_300]) {
    const begun: ServerResponse[] = []
    let closed = 0
    const server = createServer((_request, response) => begun.push(response))
    boundPipelines(server, () => (closed += 1))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    const socket = await connect(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    socket.write(requests('/', count))
    await eventually(() => begun.length > 0, 'the first request')
    if (count > LIMITS.pipelinedRequests) {
      await eventually(() => begun[0]?.destroyed, 'the connection to be closed')
      assert.deepEqual([begun.length, closed], [1, 1])
      continue
    }
    socket.resume()
    // Send twice as many requests as fit. Each answer makes room for the next request.
    for (let n = 1; n <= 2 * count; n++) {
      await eventually(() => begun.length === n, `request ${n}`)
      await sleep(1)
      assert.equal(begun.length, n)
      begun[n - 1]?.end()
      socket.write(requests('/', n <= count ? 1 : 0))
    }
    assert.equal(closed, 0)
    // The server never begins a waiting request if its connection ends.
    socket.write(requests('/', 2))
    await eventually(() => begun.length === 2 * count + 1, 'one more')
    socket.destroy()
    await eventually(() => begun.at(-1)?.destroyed, 'its end')
    await sleep(10)
    assert.equal(begun.length, 2 * count + 1)
  }
})

test('a connection that waits for its next request keeps nothing of the last one', async (t) => {
  const responses: WeakRef<ServerResponse>[] = []
  const server = createServer((_request, response) => {
    responses.push(new WeakRef(response))
    response.end()
  })
  boundPipelines(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const socket = await connect(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  socket.write(requests('/', 1))
  await eventually(() => responses.length === 1, 'the request')
  await eventually(() => {
    collectGarbage()
    return responses[0]?.deref() === undefined
  }, 'its response to be collected')
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

test('bodies that a client sends ahead arrive whole', async (t) => {
  const service = await startService()
  t.after(() => service.close())
  const socket = await connect(t, service.url)
  const head = `POST /openapi/v1/events/batch HTTP/1.1\r\nHost: tacho\r\nX-API-Key: ${service.apiKey}\r\nContent-Type: application/json\r\n`
  const batches = Array.from({ length: 5 }, (_, n) =>
    JSON.stringify([event({ payload: { text: `${n}`.repeat(200_000) } })]),
  )
  for (const body of batches) socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`)
  let text = ''
  socket.setEncoding('latin1').on('data', (piece: string) => (text += piece))
  socket.resume()
  await eventually(() => text.split('"accepted":1').length > batches.length, 'all to be recorded')
})

test('what the parser refuses is answered last, never in the place of another answer or inside of it', async (t) => {
  const begun: ServerResponse[] = []
  const server = createServer((_request, response) => begun.push(response))
  boundPipelines(server)
  server.on('clientError', (_error, socket: net.Socket) => {
    answerLast(socket, () => void (socket.writable && socket.end('refused')))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const post = 'POST / HTTP/1.1\r\nHost: tacho\r\nTransfer-Encoding: chunked\r\n\r\n'
  for (const [sent, answers] of [
    [`${requests('/', 2)}nonsense\r\n\r\n`, 2],
    // The invalid chunk belongs to the body of the second request.
    [`${requests('/', 1)}${post}nonsense\r\n`, 1],
  ] as const) {
    begun.length = 0
    const socket = await connect(t, url)
    let text = ''
    socket.setEncoding('latin1').on('data', (piece: string) => (text += piece))
    socket.resume()
    socket.write(sent)
    await eventually(() => begun.length === 1, 'the first request')
    begun[0]?.write('first half,')
    await eventually(() => text.includes('first half'), 'the half of an answer')
    socket.write('more nonsense')
    await sleep(20)
    begun[0]?.end('second half.')
    if (answers === 2) {
      await eventually(() => begun.length === 2, 'the second request')
      begun[1]?.end('other answer.')
    }
    await once(socket, 'close')
    const order = text.match(/first half,|second half\.|other answer\.|refused/g)
    const others = answers === 2 ? ['other answer.'] : []
    assert.deepEqual(order, ['first half,', 'second half.', ...others, 'refused'])
    assert.equal(begun.length, answers)
  }
})

test('a connection is read no further while what it sent ahead waits', async (t) => {
  const begun: ServerResponse[] = []
  const server = createServer((_request, response) => begun.push(response))
  boundPipelines(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sockets: net.Socket[] = []
  server.on('connection', (socket) => sockets.push(socket))
  t.after(() => server.close())
  const socket = await connect(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  socket.resume()
  const body = 'x'.repeat(60_000)
  const post = `POST / HTTP/1.1\r\nHost: tacho\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const count = LIMITS.pipelinedRequests - 1
  socket.write(requests('/', 1) + post.repeat(count))
  await eventually(() => begun.length === 1, 'the first request')
  await sleep(50)
  // The client reads a part of the answer. Node then reads from the connection again.
  begun[0]?.write('x'.repeat(8_000_000))
  await sleep(50)
  const readBytes = sockets[0]?.bytesRead ?? 0
  assert.ok(readBytes < LIMITS.pipelinedBytes + 3 * 65_536, `read ${readBytes} bytes`)
  begun[0]?.end()
  for (let n = 1; n <= count; n++) {
    await eventually(() => begun.length === n + 1, `request ${n}`)
    begun[n]?.req.resume()
    begun[n]?.end()
  }
})

test('unread documents and files hold one copy in memory and no open file', async (t) => {
  const service = await startService()
  t.after(() => service.close())
  const sizes = new Map<string, number>()
  for (const path of [DOCUMENT, SCRIPT]) sizes.set(path, (await service.call(path)).text.length)
  const largest = Math.max(...sizes.values())
  const held = () => {
    collectGarbage()
    return process.memoryUsage().arrayBuffers
  }
  const before = held()
  const sockets: net.Socket[] = []
  for (let n = 0; n < 20; n++) {
    const socket = await connect(t, service.url)
    // The client reads the beginning of the first answer.
    socket.once('data', () => socket.pause()).resume()
    socket.write(requests(n % 2 === 0 ? DOCUMENT : SCRIPT, LIMITS.pipelinedRequests))
    sockets.push(socket)
  }
  await eventually(() => sockets.every(({ bytesRead }) => bytesRead > 0), 'each to be answered')
  // Do not count what the clients have read: it is garbage, and on a busy machine each client reads more before it stops.
  const more = held() - before
  assert.ok(more < 3 * largest, `${more} bytes`)
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
})
