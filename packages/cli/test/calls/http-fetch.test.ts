import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { startHttpServer } from '../../../client/test/http-server.ts'
import { httpFetch } from '@tacho/guards/http-fetch.ts'
import { unreachable } from '../../src/engine/operator-client.ts'

test('a request arrives with its body and headers; a redirect, an empty and a packed reply are answers', async (t) => {
  const bodies: string[] = []
  const { url, requests } = await startHttpServer(t, (request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      bodies.push(body)
      if (request.url === '/packed')
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('ä'.repeat(100_000)))
      else if (request.url === '/moved') response.writeHead(302, { Location: '/packed' }).end('moved')
      else response.writeHead(204).end()
    })
  })
  const headers = { 'Content-Type': 'text/plain' }
  const empty = await httpFetch(`${url}/none`, { method: 'DELETE', headers, body: 'größer' })
  assert.deepEqual([empty.status, empty.ok, empty.body, await empty.text()], [204, true, null, ''])
  assert.deepEqual(
    [requests[0]?.method, requests[0]?.headers['content-type'], bodies[0]],
    ['DELETE', 'text/plain', 'größer'],
  )
  assert.deepEqual([requests[0]?.headers.accept, requests[0]?.headers['user-agent']], ['*/*', 'node'])
  await httpFetch(`${url}/none`, { method: 'PUT', body: gzipSync('größer') })
  assert.equal(requests[1]?.headers['content-length'], String(gzipSync('größer').length))
  const moved = await httpFetch(new URL('/moved', url))
  assert.deepEqual([moved.status, moved.ok, moved.headers.get('location')], [302, false, '/packed'])
  assert.equal(await moved.text(), 'moved')
  assert.equal(await (await httpFetch(`${url}/packed`)).text(), 'ä'.repeat(100_000))
})

test('the reason of an end reaches the caller: before the reply, within it, and of the network', async (t) => {
  const { url } = await startHttpServer(t, (request, response) => {
    if (request.url === '/part') response.writeHead(200).write('part')
    if (request.url === '/lost')
      response.writeHead(200, { 'content-length': '9' }).write('part', () => request.destroy())
  })
  const isTimeout = (error: unknown) => unreachable('http://x', error).includes('the request timed out')
  await assert.rejects(httpFetch(url, { signal: AbortSignal.timeout(200) }), isTimeout)
  const late = new AbortController()
  const part = (await httpFetch(`${url}/part`, { signal: late.signal })).text()
  // Abort with the error of AbortSignal.timeout, but only after the head of the reply has arrived.
  late.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'))
  await assert.rejects(part, isTimeout)
  await assert.rejects(httpFetch(url, { signal: AbortSignal.abort() }), { name: 'AbortError' })
  await assert.rejects((await httpFetch(`${url}/lost`)).text(), (error) =>
    unreachable('http://x', error).includes('the connection was lost'),
  )
  await assert.rejects(httpFetch(url, { method: 'PUT', body: new URLSearchParams() }), TypeError)
  await assert.rejects(httpFetch(url.replace('http:', 'HTTPS:')), (error) =>
    unreachable('http://x', error).includes('does not speak https'),
  )
  await assert.rejects(httpFetch('http://127.0.0.1:1'), (error) =>
    unreachable('http://x', error).includes('the connection was refused'),
  )
})

test('a reader that stops ends the connection', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const { url } = await startHttpServer(t, (_, response) => {
    response.once('close', resolve).writeHead(200).write('part')
  })
  await (await httpFetch(url)).body?.cancel()
  await promise
})

test('a text is whole, however late it is read', async (t) => {
  const whole = 'x'.repeat(300_000)
  const { url } = await startHttpServer(t, (request, response) => {
    if (request.url === '/packed') response.writeHead(200, { 'content-encoding': 'GZIP' }).end(gzipSync(whole))
    else response.end(whole)
  })
  for (const path of ['/packed', '/plain']) {
    const reply = await httpFetch(url + path)
    await sleep(50)
    assert.equal(await reply.text(), whole)
  }
})

test('a reply that switches the protocol is an error', async (t) => {
  const server = createServer((socket) => {
    const reply = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n'
    socket.on('error', () => undefined).once('data', () => socket.write(reply))
  }).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  await assert.rejects(httpFetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), (error) =>
    unreachable('http://x', error).includes('the connection was lost'),
  )
})

test('a connection that the server closed while the thread was busy is not used again', async (t) => {
  const { url } = await startHttpServer(t, (request, response) => {
    response.end('ok', () => setImmediate(() => request.socket.destroy()))
    request.resume()
  })
  for (let count = 0; count < 20; count++) {
    const reply = await httpFetch(url, { method: 'POST', body: 'x' })
    assert.equal(await reply.text(), 'ok')
  }
})
