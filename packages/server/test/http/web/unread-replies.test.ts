/** Clients that read nothing of a reply, on real sockets and with a clock of the test. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { cutStalledReaders, demandPace } from '../../../src/http/web/connections.ts'
import { eventually } from '../../setup/eventually.ts'

const STALLED_MS = 50
const PIECE = Buffer.alloc(65_536)
/** More than the socket buffers of both sides can hold. */
const LARGE = Array.from({ length: 512 }, () => PIECE)

/** Enough for the sockets to accept more, and a small part of the reply. */
const SOME_BYTES = 2 * 1_048_576

/** A request whose client reads nothing until the test says so, and its response on the server. */
async function ask(t: TestContext) {
  const clock = { now: 0, looks: 0 }
  const server = createServer()
  cutStalledReaders(server, STALLED_MS, () => {
    clock.looks += 1
    return clock.now
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1')
  t.after(() => client.destroy())
  client.on('error', () => undefined)
  client.pause()
  const requested = once(server, 'request') as Promise<[unknown, ServerResponse]>
  client.write('GET / HTTP/1.1\r\nHost: tacho\r\n\r\n')
  const [, response] = await requested
  /** Moves the clock, and lets the server check its sockets twice. */
  const advance = async (ms: number) => {
    clock.now += ms
    const looks = clock.looks + 2
    await eventually(() => clock.looks >= looks || response.destroyed, 'the server to look at its sockets')
  }
  const untilFull = () => eventually(() => (response.socket?.writableLength ?? 0) > 0, 'the sockets to be full')
  const taken = () => (response.socket?.bytesWritten ?? 0) - (response.socket?.writableLength ?? 0)
  /** Lets the client read a part of the reply, and waits until the server notices. */
  const readSome = async () => {
    const before = taken()
    let left = SOME_BYTES
    await new Promise<void>((resolve) => {
      client.on('data', function take(chunk: Buffer) {
        left -= chunk.length
        if (left > 0) return
        client.pause().off('data', take)
        resolve()
      })
      client.resume()
    })
    await eventually(() => taken() > before, 'the client to take some')
  }
  return { response, advance, untilFull, readSome }
}

test('a client that reads nothing for the timeout is disconnected, and not before', async (t) => {
  const { response, advance, untilFull } = await ask(t)
  Readable.from(LARGE).pipe(response)
  await untilFull()
  // The kernels may accept some more at first.
  await advance(0)
  await advance(STALLED_MS - 1)
  assert.equal(response.destroyed, false)
  await advance(1)
  assert.equal(response.destroyed, true)
})

test('a stream that keeps writing does not keep a stalled client connected', async (t) => {
  const { response, advance, untilFull } = await ask(t)
  Readable.from(LARGE).pipe(response, { end: false })
  await untilFull()
  await advance(0)
  for (let beat = 0; beat < 10 && !response.destroyed; beat++) {
    response.write(': heartbeat\n\n')
    await advance(STALLED_MS / 5)
  }
  assert.equal(response.destroyed, true)
})

test('a client that waits for its answer, or reads some of it from time to time, stays connected', async (t) => {
  const { response, advance, untilFull, readSome } = await ask(t)
  await advance(STALLED_MS * 10)
  Readable.from(LARGE).pipe(response)
  await untilFull()
  for (let time = 0; time < 5; time++) {
    await advance(STALLED_MS - 1)
    await readSome()
    await advance(0)
  }
  assert.equal(response.destroyed, false)
})

test('a client that reads less than its pace demands is disconnected, and not before', async (t) => {
  const { response, advance, untilFull, readSome } = await ask(t)
  const { socket } = response
  assert.ok(socket)
  // The required pace is more than the client reads in this test.
  const leave = demandPace(socket, LARGE.length * PIECE.length)
  Readable.from(LARGE).pipe(response)
  await untilFull()
  await advance(0)
  await advance(STALLED_MS - 1)
  await readSome()
  assert.equal(response.destroyed, false)
  leave()
  // Without a pace, any progress counts.
  await advance(1)
  assert.equal(response.destroyed, false)
  demandPace(socket, LARGE.length * PIECE.length)
  await readSome()
  await advance(STALLED_MS)
  assert.equal(response.destroyed, true)
})
