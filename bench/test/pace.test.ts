import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { requestHead, withConnections } from '../src/load/connection.ts'
import { paceRequests } from '../src/load/pace.ts'

const slow = (ms: number) => () => wait(ms).then(() => undefined)

test('times far below a millisecond are measured', async () => {
  const { times } = await paceRequests([() => Promise.resolve()], { requests: 1_000 })
  assert.equal(times.count, 1_000)
  assert.ok(times.p50 > 0)
})

test('at least one reply counts, with its own time, however slow it is', async () => {
  const { answered, seconds } = await paceRequests([slow(50), slow(50)], { seconds: 0 })
  assert.equal(answered, 1)
  assert.ok(seconds >= 0.045)
})

test('at fixed times, the wait for a busy connection counts', async () => {
  const { answered, times } = await paceRequests([slow(30)], { seconds: 0.1, perSecond: 100 })
  assert.equal(answered, 10)
  assert.ok(times.p999 > 150)
})

test('a 304 ends with its headers, even if it names a length', async (t) => {
  const server = createServer((socket) => {
    socket.on('data', () => socket.write('HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n'))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  await withConnections(url, 1, async ([connection]) => {
    for (let n = 0; n < 2; n++) {
      const reply = await connection?.request([requestHead('GET', url, {})])
      assert.deepEqual([reply?.status, reply?.body.length], [304, 0])
    }
  })
})
