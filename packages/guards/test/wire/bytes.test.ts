/** The proxy changes no byte of a body, in either direction, of any size and encoding. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { BodyCopy, COPY_BYTES_MAX } from '../../src/wire/body-copy.ts'
import { startRecordedWire } from './recorded-wire.ts'
import { answerJson, chatAnswer, sha256 } from './scripted-model.ts'
import { collectGarbage } from '../../../server/test/setup/heap-growth.ts'

const QUESTION = JSON.stringify({ model: 'gpt-5', messages: [{ role: 'user', content: 'Hi' }] })

async function send(
  url: string,
  options: http.RequestOptions,
  body: Iterable<Buffer | string> | AsyncIterable<Buffer | string> = [],
): Promise<{ answer: IncomingMessage; sha256: string; bytes: number; text: string }> {
  const request = http.request(url, options)
  const answered = once(request, 'response') as Promise<[IncomingMessage]>
  // An upstream may close the connection while the body is sent.
  request.on('error', () => undefined)
  Readable.from(body).pipe(request)
  const [answer] = await answered
  const sum = createHash('sha256')
  let bytes = 0
  let text = ''
  for await (const piece of answer as AsyncIterable<Buffer>) {
    sum.update(piece)
    bytes += piece.length
    if (bytes < 100_000) text += piece.toString()
  }
  return { answer, sha256: sum.digest('hex'), bytes, text }
}

const ENCODINGS = { gzip: gzipSync, br: brotliCompressSync, zstd: zstdCompressSync }

for (const [encoding, compress] of Object.entries(ENCODINGS)) {
  test(`an answer in ${encoding} passes as it is, and is read for the recording`, async () => {
    const body = compress(JSON.stringify(chatAnswer('Bonjour, ça va?')))
    await using wire = await startRecordedWire((_asked, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding })
      for (let at = 0; at < body.length; at += 7) response.write(body.subarray(at, at + 7))
      response.end()
    })
    const url = `${wire.baseOf('openai', '/v1')}/chat/completions`
    const got = await send(url, { method: 'POST', headers: { 'accept-encoding': encoding } }, [QUESTION])
    assert.equal(got.sha256, sha256(body))
    assert.equal(got.answer.headers['content-encoding'], encoding)
    assert.equal(wire.model.asked[0]?.sha256, sha256(QUESTION))
    const call = (await wire.end()).find(({ eventType }) => eventType === 'LLM_CALL')?.payload
    assert.equal((call?.['output'] as { content: string } | undefined)?.content, 'Bonjour, ça va?')
  })
}

test('100 MB pass in both directions with the same hash, and are not held', async () => {
  const piece = randomBytes(1_048_576)
  const sum = createHash('sha256')
  for (let each = 0; each < 100; each++) sum.update(piece)
  const whole = sum.digest('hex')
  function* pieces() {
    for (let each = 0; each < 100; each++) yield piece
  }
  await using wire = await startRecordedWire((_asked, response) => {
    response.writeHead(200, { 'content-type': 'application/octet-stream' })
    Readable.from(pieces()).pipe(response)
  })
  const held = () => {
    // Collect twice, because a separate thread frees buffers after a collection, and the next collection waits for it.
    collectGarbage()
    collectGarbage()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const before = held()
  let most = before
  const timer = setInterval(() => (most = Math.max(most, held())), 1_000)
  const got = await send(`${wire.baseOf('openai', '/v1')}/chat/completions`, { method: 'POST' }, pieces())
  clearInterval(timer)
  assert.equal(got.sha256, whole)
  assert.equal(wire.model.asked[0]?.sha256, whole)
  assert.equal(wire.model.asked[0]?.bytes, 104_857_600)
  // Copies of up to 32 MiB of the request and 16 MiB of the answer's text, and the bytes under way.
  assert.ok(most - before < 100_000_000, `${most - before} bytes`)
  const call = (await wire.end()).find(({ eventType }) => eventType === 'LLM_CALL')?.payload
  assert.equal(call?.['messages'], '[too large]')
})

test('a client that reads slowly slows the model down: nothing piles up, and every byte arrives', async () => {
  const piece = randomBytes(1_048_576)
  let sent = 0
  function* pieces() {
    for (; sent < 100; sent++) yield piece
  }
  await using wire = await startRecordedWire((_asked, response) => {
    response.writeHead(200, { 'content-type': 'application/octet-stream' })
    Readable.from(pieces()).pipe(response)
  })
  const request = http.request(`${wire.baseOf('openai', '/v1')}/chat/completions`, { method: 'POST' }).end(QUESTION)
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  let before = -1
  for (; before !== sent; await sleep(500)) before = sent
  // Only the buffers of the sockets between model, proxy and client are filled.
  assert.ok(sent < 50, `${sent} MB`)
  const [sum, whole] = [createHash('sha256'), createHash('sha256')]
  for await (const read of answer as AsyncIterable<Buffer>) sum.update(read)
  for (let each = 0; each < 100; each++) whole.update(piece)
  assert.equal(sum.digest('hex'), whole.digest('hex'))
})

test('headers keep their spelling and order; those of the connection and our own stay behind', async () => {
  await using wire = await startRecordedWire((_asked, response) => {
    response.writeHead(200, [
      'Content-Type',
      'application/json',
      'X-Request-ID',
      'r1',
      'Set-Cookie',
      'a=1',
      'Set-Cookie',
      'b=2',
    ])
    response.end('{}')
  })
  const headers = {
    Authorization: 'Bearer sk',
    'X-Stainless-Lang': 'go',
    Connection: 'close, X-Hop',
    'X-Hop': '1',
    'X-Tacho-Key': 'k',
  }
  const { answer } = await send(`${wire.baseOf('openai', '/v1')}/models?limit=2`, { headers })
  const { rawHeaders = [], path } = wire.model.asked[0] ?? {}
  assert.equal(path, '/v1/models?limit=2')
  assert.ok(rawHeaders.includes('X-Stainless-Lang') && rawHeaders.includes('Authorization'))
  assert.equal(
    rawHeaders.some((name) => /^x-(hop|tacho-key)$/i.test(name)),
    false,
  )
  assert.ok(answer.rawHeaders.includes('X-Request-ID'))
  assert.deepEqual(answer.headers['set-cookie'], ['a=1', 'b=2'])
  assert.equal(
    (await wire.end()).some(({ eventType }) => eventType === 'LLM_CALL'),
    false,
  )
})

test('one connection carries many requests to the proxy and to the model', async () => {
  const sockets = new Set<unknown>()
  await using wire = await startRecordedWire((_asked, response, request) => {
    sockets.add(request.socket)
    answerJson(response, chatAnswer('Hi.'))
  })
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  for (let each = 0; each < 5; each++) {
    const url = `${wire.baseOf('openai', '/v1')}/chat/completions`
    await send(url, { method: 'POST', agent }, [QUESTION])
  }
  agent.destroy()
  assert.equal(sockets.size, 1)
})

test('a wrong secret learns nothing; no model is a 502; half an answer breaks', async () => {
  await using wire = await startRecordedWire((_asked, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1_000 })
    response.write('{"id":')
    setTimeout(() => response.destroy(), 20)
  })
  const wrong = await send(`${wire.proxy.origin}/another-secret/openai/v1/models`, {})
  assert.equal(wrong.answer.statusCode, 404)
  assert.equal(wire.model.asked.length, 0)
  await assert.rejects(
    send(`${wire.baseOf('openai', '/v1')}/chat/completions`, { method: 'POST' }, [QUESTION]),
    /aborted/,
  )
  await wire.model.close()
  const none = await send(`${wire.baseOf('openai', '/v1')}/chat/completions`, { method: 'POST' }, [QUESTION])
  assert.equal(none.answer.statusCode, 502)
  assert.match(none.text, /cannot be reached \(ECONNREFUSED\)/)
  const calls = (await wire.end()).filter(({ eventType }) => eventType === 'LLM_CALL')
  assert.deepEqual(
    calls.map(({ payload }) => (payload['error'] as { code: string }).code),
    ['ECONNRESET', 'ECONNREFUSED'],
  )
})

test('an upstream that refuses early is heard while the body is still sent', async () => {
  await using wire = await startRecordedWire(() => undefined)
  const refusing = http
    .createServer((_request, response) => {
      response.writeHead(413, { 'content-type': 'application/json' })
      response.end('{"error":{"message":"Too large."}}')
    })
    .listen(0, '127.0.0.1')
  await once(refusing, 'listening')
  try {
    const { port } = refusing.address() as { port: number }
    wire.routes.set('openai', new URL(`http://127.0.0.1:${port}`))
    const pieces = Array.from({ length: 40 }, () => Buffer.alloc(1_048_576, 32))
    const got = await send(`${wire.baseOf('openai', '/v1')}/chat/completions`, { method: 'POST' }, pieces)
    assert.equal(got.answer.statusCode, 413)
  } finally {
    refusing.closeAllConnections()
    refusing.close()
  }
  const call = (await wire.end()).find(({ eventType }) => eventType === 'LLM_CALL')?.payload
  assert.equal((call?.['error'] as { status: number } | undefined)?.status, 413)
})

test('copies for the recording are bounded for all requests together; what does not fit passes without one', () => {
  const piece = Buffer.alloc(COPY_BYTES_MAX)
  const copied = () => {
    const copy = new BodyCopy()
    copy.add(piece)
    return copy
  }
  const copies = Array.from({ length: 20 }, copied)
  assert.equal(copies.filter(({ isWhole }) => isWhole).length, 16)
  assert.equal(copies.at(-1)?.whole(), undefined)
  for (const copy of copies) copy.release()
  assert.ok(copied().isWhole)
})
