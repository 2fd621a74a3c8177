import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { test, type TestContext } from 'node:test'
import fc from 'fast-check'
import { BrokenStream, readMessages } from '../src/messages.ts'
import { createOperatorClient } from '../src/operator.ts'
import type { Wait } from '../src/wait.ts'
import { startHttpServer } from './http-server.ts'

const MESSAGES = [
  { event: 'snapshot', data: { items: ['ü 😀'], more: false } },
  { event: 'changed', data: { items: [] } },
  { event: 'end', data: { reason: 'shutting_down' } },
]

function wire(newline: string): Uint8Array {
  const texts = MESSAGES.map(({ event, data }) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n: heartbeat\n\n`)
  return new TextEncoder().encode(`retry: 1000\n\n${texts.join('')}`.replaceAll('\n', newline))
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

/** No timeout matters, because all bytes are available. */
const NO_WAIT: Wait = { signal: new AbortController().signal, renew() {}, end() {} }

function readAll(chunks: Uint8Array[], maxBytes = 1000): Promise<{ event: string; data: unknown }[]> {
  return all(readMessages(ReadableStream.from(chunks), maxBytes, NO_WAIT))
}

test('messages are read with every newline of the standard, wherever the bytes are split', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('\n', '\r\n', '\r'),
      fc.array(fc.nat({ max: 300 }), { maxLength: 10 }),
      async (newline, cuts) => {
        const bytes = wire(newline)
        const places = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b), bytes.length]
        const chunks = places.slice(1).map((place, index) => bytes.slice(places[index], place))
        assert.deepEqual(await readAll(chunks), MESSAGES)
      },
    ),
  )
})

test('data on several lines is one text, and a message without a name is a `message`', async () => {
  const bytes = new TextEncoder().encode('data: {"a":\ndata: 1}\n\n')
  assert.deepEqual(await readAll([bytes]), [{ event: 'message', data: { a: 1 } }])
})

test('a message that never ends, or is not JSON, breaks the stream', async () => {
  const endless = Array.from({ length: 20 }, () => new TextEncoder().encode(`data: ${'x'.repeat(100)}\n`))
  await assert.rejects(readAll(endless), BrokenStream)
  assert.equal((await readAll(endless, 10_000)).length, 0)
  await assert.rejects(readAll([new TextEncoder().encode('data: {\n\n')]), BrokenStream)
})

async function open(
  t: TestContext,
  answer: RequestListener,
  options: { timeoutMs?: number; signal?: AbortSignal } = {},
) {
  const { url } = await startHttpServer(t, answer)
  const client = createOperatorClient({ url, token: 't' })
  const result = await client.streamApprovals({ params: { environmentId: 'e' } }, options)
  assert.ok(result.ok)
  return result.value
}

test('a stream that falls silent is broken', async (t) => {
  const silent = await open(t, (_request, response) => void response.write(': hello\n\n'), { timeoutMs: 1_000 })
  await assert.rejects(all(silent), BrokenStream)
})

test('each chunk restarts the timeout, and no timeout runs while the reader is busy', async () => {
  let running = true
  let renewals = 0
  const wait: Wait = {
    signal: new AbortController().signal,
    renew() {
      running = true
      renewals += 1
    },
    end: () => (running = false),
  }
  const chunks = [': heartbeat\n\n', 'data: {}\n\n', ': heartbeat\n\n', 'data: {}\n\n']
  const body = ReadableStream.from(chunks.map((chunk) => new TextEncoder().encode(chunk)))
  for await (const _ of readMessages(body, 1000, wait)) assert.equal(running, false)
  assert.deepEqual([renewals, running], [chunks.length + 1, false])
})

test('a lost connection breaks the stream, and so does the signal of the call', async (t) => {
  const cut = await open(t, (_request, response) => {
    response.write(wire('\n'))
    setTimeout(() => response.destroy(), 50)
  })
  await assert.rejects(all(cut), BrokenStream)

  const leaving = new AbortController()
  const left = await open(t, (_request, response) => void response.write(wire('\n')), { signal: leaving.signal })
  let count = 0
  await assert.rejects(async () => {
    for await (const _ of left) if (++count === MESSAGES.length) leaving.abort()
  }, BrokenStream)
})

test('leaving the loop closes the connection', async (t) => {
  let closed: Promise<unknown> = Promise.resolve()
  const stream = await open(t, (_request, response) => {
    closed = once(response, 'close')
    response.write(wire('\n'))
  })
  for await (const _ of stream) break
  await closed
})
