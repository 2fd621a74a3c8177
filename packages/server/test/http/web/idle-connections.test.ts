/** Connections that wait for a request. On real sockets. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { boundIdleConnections } from '../../../src/http/web/connections.ts'
import { eventually } from '../../setup/eventually.ts'
import { startFromSources } from '../../setup/service.ts'

async function connect(t: TestContext, port: number): Promise<net.Socket> {
  const socket = net.connect({ host: '127.0.0.1', port })
  t.after(() => socket.destroy())
  socket.on('error', () => undefined).resume()
  await once(socket, 'connect')
  return socket
}

const REQUEST = 'GET / HTTP/1.1\r\nHost: tacho\r\n\r\n'

test('beyond the bound, the connection that has waited longest is closed, and none with a request under way', async (t) => {
  const held: ServerResponse[] = []
  const server = createServer((_request, response) => held.push(response))
  boundIdleConnections(server, 2)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo

  const working = await connect(t, port)
  working.write(REQUEST.repeat(2))
  await eventually(() => held.length === 2, 'the requests')
  const first = await connect(t, port)
  const second = await connect(t, port)
  held.shift()?.end('one')
  // `first` waits again from now on, so `second` has waited longest.
  first.write(REQUEST)
  await eventually(() => held.length === 2, 'the third request')
  held.pop()?.end()
  await once(first, 'data')
  const third = await connect(t, port)
  await eventually(() => second.destroyed, 'the longest to be closed')
  assert.deepEqual([working.destroyed, first.destroyed, third.destroyed], [false, false, false])
  held.shift()?.end('two')
  await eventually(() => first.destroyed, 'the next one to be closed')
  assert.deepEqual([working.destroyed, third.destroyed], [false, false])
})

test('the server has the bound', async (t) => {
  const limits: { idleConnections: number } = LIMITS
  const { idleConnections } = limits
  limits.idleConnections = 20
  const service = await startFromSources().finally(() => (limits.idleConnections = idleConnections))
  t.after(() => service.close())
  const port = Number(new URL(service.url).port)
  const longest = await connect(t, port)
  const others = await Promise.all(Array.from({ length: 20 }, () => connect(t, port)))
  await eventually(() => longest.destroyed, 'the longest to be closed')
  // Check now: after some seconds, Node would close all of them, because no header arrives.
  assert.equal(
    others.some(({ destroyed }) => destroyed),
    false,
  )
  const { status } = await service.call('/healthz')
  assert.equal(status, 200)
})
