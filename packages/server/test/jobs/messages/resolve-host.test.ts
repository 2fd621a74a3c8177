import assert from 'node:assert/strict'
import dgram from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { createHostResolver } from '../../../src/jobs/messages/webhook-sender.ts'

/** A name server: it knows two names, refuses one, and never answers about any other. */
const server = dgram.createSocket('udp4')
const asked: string[] = []
let address = ''
before(async () => {
  server.on('message', (query, { port }) => {
    const name = nameIn(query)
    asked.push(name)
    const type = query.readUInt16BE(12 + name.length + 2)
    if (name === 'receiver.example') server.send(answer(query, type === 1 ? [10, 1, 2, 3] : null), port, '127.0.0.1')
    else if (name === 'unknown.example') server.send(answer(query, null, 3), port, '127.0.0.1')
  })
  server.bind(0, '127.0.0.1')
  await once(server, 'listening')
  address = `127.0.0.1:${server.address().port}`
})
after(() => server.close())

test('a host is resolved by its name servers, once for a while', async () => {
  let clock = 0
  const resolve = createHostResolver({ servers: [address], now: () => clock })
  const expected = [{ address: '10.1.2.3', family: 4 }]
  assert.deepEqual(await Promise.all([resolve('receiver.example'), resolve('receiver.example')]), [expected, expected])
  const count = () => asked.filter((name) => name === 'receiver.example').length
  assert.equal(count(), 2, 'one for each family')
  clock = 29_999
  assert.deepEqual(await resolve('receiver.example'), expected)
  assert.equal(count(), 2)
  clock = 30_001
  await resolve('receiver.example')
  assert.equal(count(), 4)
  await assert.rejects(resolve('unknown.example'), { code: 'ENOTFOUND' })
})

test('an address and a name of this machine need no name server', async () => {
  const resolve = createHostResolver({ servers: [address] })
  const before = asked.length
  assert.deepEqual(await resolve('::1'), [{ address: '::1', family: 6 }])
  assert.ok((await resolve('localhost')).some(({ address: found }) => found === '127.0.0.1'))
  assert.equal(asked.length, before)
})

test('silent name servers end in an error, and hold no thread that others need', async () => {
  const resolve = createHostResolver({ servers: [address], timeoutMs: 1_000 })
  let settled = 0
  const silent = Array.from({ length: 24 }, (_, n) => resolve(`silent-${n}.example`).finally(() => (settled += 1)))
  const all = Promise.allSettled(silent)
  assert.deepEqual(await resolve('receiver.example'), [{ address: '10.1.2.3', family: 4 }])
  await lookup('localhost')
  assert.equal(settled, 0, 'the silent ones still wait')
  for (const result of await all) assert.equal(result.status, 'rejected')
})

function nameIn(query: Buffer): string {
  const labels: string[] = []
  for (let at = 12; query[at] !== 0; at += (query[at] ?? 0) + 1) {
    labels.push(query.toString('latin1', at + 1, at + 1 + (query[at] ?? 0)))
  }
  return labels.join('.').toLowerCase()
}

/** A reply to a query of one question: one A record, or none. */
function answer(query: Buffer, address: number[] | null, code = 0): Buffer {
  const end = 12 + nameIn(query).length + 2 + 4
  const header = Buffer.from(query.subarray(0, 12))
  header.writeUInt16BE(0x8180 | code, 2)
  header.writeUInt16BE(address ? 1 : 0, 6)
  header.writeUInt16BE(0, 10)
  const record = address ? Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address]) : Buffer.alloc(0)
  return Buffer.concat([header, query.subarray(12, end), record])
}
