import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { eventually } from '../../setup/eventually.ts'
import { createWebhookSender } from '../../../src/jobs/messages/webhook-sender.ts'

const message = { headers: { 'content-type': 'application/json' }, body: '{}' }
let receiver: Server
let port = 0
const requests: string[] = []

before(async () => {
  receiver = createServer((request, response) => {
    requests.push(request.url ?? '')
    if (request.url === '/moved') response.writeHead(302, { location: `http://127.0.0.1:${port}/ok` })
    else if (request.url === '/large') response.write('x'.repeat(1_000_000))
    else response.statusCode = Number(request.url?.slice(1)) || 200
    response.end()
  }).listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  port = (receiver.address() as AddressInfo).port
})
after(() => receiver.close())

test('internal addresses are never connected to, in any notation', async () => {
  const sender = createWebhookSender([])
  const hosts = ['127.0.0.1', 'localhost', '[::1]', '2130706433', '0x7f.1', '017700000001', '0', '[::ffff:127.0.0.1]']
  const others = [
    '169.254.169.254',
    '10.1.2.3',
    '192.168.0.1',
    '100.64.0.1',
    '[fd00::1]',
    '[fe80::1]',
    '[64:ff9b::7f00:1]',
    '[::127.0.0.1]',
    '[::2]',
    '[4000::1]',
    '[fec0::1]',
    '[1fff:ffff::1]',
  ]
  for (const host of [...hosts, ...others]) {
    const url = `http://${host}:${port}/secret`
    const sent = await sender.send({ ...message, url })
    assert.equal(sent.ok, false, host)
    assert.match(sent.ok ? '' : sent.error, /is not public/, host)
    assert.match((await sender.check(url)) ?? '', /is not public/, host)
  }
  assert.deepEqual(requests, [])
  await sender.close()
})

/** The rows of IANA's registries of special-purpose addresses that are not globally reachable, the first and last address. */
const SPECIAL = `0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.0 127.255.255.255
  169.254.0.0 169.254.255.255 172.16.0.0 172.31.255.255 192.0.0.0 192.0.0.7 192.0.0.8 192.0.0.170 192.0.0.171 192.0.2.0
  192.0.2.255 192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255 198.51.100.0 198.51.100.255 203.0.113.0 203.0.113.255
  240.0.0.0 255.255.255.254 255.255.255.255 224.0.0.1 239.255.255.255 [::] [::1] [::ffff:0:0] [::ffff:10.0.0.1] [64:ff9b:1::]
  [64:ff9b:1:ffff:ffff:ffff:ffff:ffff] [100::] [100::ffff:ffff:ffff:ffff] [100:0:0:1::] [2001:2::] [2001:2:0:ffff::]
  [2001:10::] [2001:1f:ffff::] [2001:db8::] [2001:db8:ffff::] [2002:a00:1::] [3fff::] [3fff:fff:ffff::] [5f00::]
  [5f00:ffff::] [fc00::] [fdff:ffff::] [fe80::] [febf:ffff::] [ff02::1]`.split(/\s+/)
const METADATA = [
  '169.254.169.254',
  '168.63.129.16',
  '100.100.100.200',
  '192.0.0.192',
  '[fd00:ec2::254]',
  '[fd20:ce::254]',
  '[::ffff:168.63.129.16]',
  '2822734096',
]

test('no special-purpose address and no metadata service of a cloud is public', async () => {
  const sender = createWebhookSender([])
  for (const host of [...SPECIAL, ...METADATA]) {
    assert.match((await sender.check(`http://${host}/`)) ?? '', /is not public/, host)
  }
  for (const host of ['1.1.1.1', '168.63.129.17', '[2606:4700:4700::1111]']) {
    assert.equal(await sender.check(`http://${host}/`), null, host)
  }
  await sender.close()
})

test('a network that contains a metadata service does not allow it, its own address does', async () => {
  const wide = createWebhookSender(['linklocal', 'uniquelocal', '168.63.0.0/16', '100.64.0.0/10', 'fd00::/8'])
  for (const host of METADATA.filter((one) => one !== '192.0.0.192')) {
    assert.match((await wide.check(`http://${host}/`)) ?? '', /is not public/, host)
  }
  assert.equal(await wide.check('http://169.254.1.1/'), null)
  const named = createWebhookSender(['168.63.129.16', 'fd00:ec2::254/128'])
  for (const host of ['168.63.129.16', '[fd00:ec2::254]'])
    assert.equal(await named.check(`http://${host}/`), null, host)
  await Promise.all([wide.close(), named.close()])
})

test('an address that is not http, has a password or does not resolve is refused', async () => {
  const sender = createWebhookSender([])
  for (const url of ['', 'nonsense', 'ftp://example.com', 'file:///etc/passwd', 'javascript:1']) {
    assert.match((await sender.check(url)) ?? '', /must be an http/, url)
  }
  assert.match((await sender.check('https://user:secret@example.com')) ?? '', /password/)
  assert.match((await sender.check('https://no-such-host.invalid/')) ?? '', /does not resolve/)
  assert.equal(await sender.check('https://203.0.114.7/hook'), null)
  assert.equal(await sender.check('https://[2606:4700::1111]/hook'), null)
  assert.equal(await sender.check('https://[3fff:ffff::1]/hook'), null)
  await sender.close()
})

test('your own networks can be allowed, by name or by range', async () => {
  for (const allowed of ['loopback', '127.0.0.0/8', '127.0.0.1']) {
    const sender = createWebhookSender([allowed])
    assert.equal(await sender.check(`http://127.0.0.1:${port}/200`), null)
    assert.deepEqual(await sender.send({ ...message, url: `http://127.0.0.1:${port}/200` }), { ok: true, status: 200 })
    assert.match((await sender.check('http://10.0.0.1/')) ?? '', /is not public/)
    await sender.close()
  }
})

test('redirects are not followed, answers other than 2xx are failures, and endless answers are cut', async () => {
  const sender = createWebhookSender(['loopback'])
  const send = (path: string) => sender.send({ ...message, url: `http://127.0.0.1:${port}/${path}` })
  requests.length = 0
  assert.deepEqual(await send('moved'), { ok: false, status: 302, error: 'The receiver answered 302' })
  assert.deepEqual(await send('500'), { ok: false, status: 500, error: 'The receiver answered 500' })
  assert.deepEqual(requests, ['/moved', '/500'])
  await send('large')
  await sender.close()
})

test('an unreachable receiver is a failure with a clear sentence', async () => {
  const sender = createWebhookSender(['loopback'])
  const sent = await sender.send({ ...message, url: 'http://127.0.0.1:1/' })
  assert.equal(sent.ok, false)
  assert.match(sent.ok ? '' : sent.error, /./)
  await sender.close()
})

/** A receiver on TCP, whose answers may be invalid HTTP. */
async function rawReceiver(answer: (socket: Socket) => void) {
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
    socket.once('data', () => answer(socket))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, sockets, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}

test('an answer that never ends is cut however it is framed, so that parsing it does not stop the service', async () => {
  const interim = 'HTTP/1.1 103 Early Hints\r\n\r\n'
  const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'
  const endless: [string, string][] = [
    ['', interim.repeat(2_000)],
    [chunked, '1\r\na\r\n'.repeat(10_000)],
    [`${chunked}1;`, 'x'.repeat(65_536)],
  ]
  for (const [start, piece] of endless) {
    let written = 0
    const receiver = await rawReceiver((socket) => {
      socket.write(start)
      const flood = () => {
        while (!socket.destroyed) {
          written += piece.length
          if (!socket.write(piece)) break
        }
      }
      socket.on('drain', flood)
      flood()
    })
    const sender = createWebhookSender(['loopback'])
    const began = performance.now()
    const sent = await sender.send({ ...message, url: receiver.url })
    assert.ok(performance.now() - began < 5_000, 'before the timeout')
    assert.ok(written < 32 * 1_048_576, `${written} bytes`)
    if (start === '') assert.deepEqual(sent, { ok: false, status: null, error: 'The answer is too large' })
    await sender.close()
    receiver.server.close()
  }
})

test('a receiver cannot keep a connection open', async () => {
  const held = 'HTTP/1.1 200 OK\r\nconnection: keep-alive\r\nkeep-alive: timeout=600\r\ncontent-length: 0\r\n\r\n'
  const receiver = await rawReceiver((socket) => socket.write(held))
  const sender = createWebhookSender(['loopback'])
  assert.deepEqual(await sender.send({ ...message, url: receiver.url }), { ok: true, status: 200 })
  await eventually(() => receiver.sockets.size === 0, 'the end of the connection')
  await sender.close()
  receiver.server.close()
})
