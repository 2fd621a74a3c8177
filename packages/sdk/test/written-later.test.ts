/** A record call only captures. Masking and JSON follow later, between two turns of the host. */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { Tacho, type TachoOptions } from '../src/index.ts'
import { streamed } from '../src/process/streamed.ts'
import { Queue, QueuedItem } from '../src/delivery/queue.ts'
import { startScriptedServer } from './scripted-server.ts'

async function setup(t: TestContext, options: TachoOptions = {}) {
  const server = await startScriptedServer()
  t.after(server.close)
  const tacho = new Tacho({ apiKey: 'key', baseUrl: server.url, onDiagnostic: () => undefined, ...options })
  t.after(() => tacho.shutdown(0))
  return { server, tacho }
}

/** Events of `bytes` each that note when they are written. */
function drafts(count: number, { estimate, bytes }: { estimate: number; bytes: number }) {
  const written: number[] = []
  const events = Array.from({ length: count }, (_, index) => {
    const write = () => {
      written.push(index)
      return ['x'.repeat(bytes - 1), ''] as const
    }
    return new QueuedItem({ id: String(index), isProtected: false, sequence: index }, write, estimate)
  })
  return { written, events }
}

test('drafts are written a piece at a time, oldest first, and the rest when they are taken', () => {
  const queue = new Queue({ maxBatch: 100, maxQueuedEvents: 10, maxQueuedBytes: 10_000 })
  const { events, written } = drafts(5, { estimate: 90, bytes: 100 })
  for (const event of events) queue.add(event)
  assert.deepEqual(written, [])
  assert.equal(queue.heldBytes, 450)
  queue.write(150)
  assert.deepEqual(written, [0, 1])
  assert.equal(queue.heldBytes, 470)
  assert.deepEqual(
    queue.take(3, 1_000).map(({ id }) => id),
    ['0', '1', '2'],
  )
  assert.deepEqual(written, [0, 1, 2])
  assert.equal(queue.heldBytes, 480)
})

test('the bound of queued bytes holds when events grow as they are written', () => {
  const queue = new Queue({ maxBatch: 100, maxQueuedEvents: 10, maxQueuedBytes: 1_000 })
  const { events } = drafts(9, { estimate: 100, bytes: 300 })
  for (const event of events) assert.deepEqual(queue.add(event), [])
  const dropped = queue.write(100_000)
  assert.equal(dropped.length, 6)
  assert.ok(queue.heldBytes <= 1_000)
})

test('a request is filled with what was written, not with estimates', () => {
  const queue = new Queue({ maxBatch: 100, maxQueuedEvents: 10, maxQueuedBytes: 100_000 })
  const { events } = drafts(9, { estimate: 10, bytes: 300 })
  for (const event of events) queue.add(event)
  assert.equal(queue.take(100, 1_000).length, 3)
})

test('a later change of the payload has no effect', async (t) => {
  const { server, tacho } = await setup(t)
  const given = {
    list: [1, { deep: 'a' }],
    at: new Date(0),
    half: '\ud800',
    none: undefined,
    boxed: Object('b') as string,
  }
  tacho.startRun().step('s', given)
  given.list.push(2)
  ;(given.list[1] as { deep: string }).deep = 'b'
  given.at.setTime(1)
  await tacho.flush()
  assert.deepEqual(server.events()[0]?.payload, {
    list: [1, { deep: 'a' }],
    at: '1970-01-01T00:00:00.000Z',
    half: '\ufffd',
    boxed: 'b',
  })
})

test('a function of the host masks in its record call', async (t) => {
  const texts: string[] = []
  const { tacho } = await setup(t, { masking: { custom: (text) => (texts.push(text), text) } })
  tacho.startRun().step('s', { text: 'mine' })
  assert.ok(texts.includes('mine'))
})

test('with a spool, the masked event is on disk when the record call returns', async (t) => {
  const spool = mkdtempSync(path.join(tmpdir(), 'tacho-later-'))
  t.after(() => rmSync(spool, { recursive: true }))
  const { tacho } = await setup(t, { spool })
  tacho.startRun().step('s', { text: 'password=hunter2' })
  const lines = readdirSync(spool).map((name) => readFileSync(path.join(spool, name), 'utf8'))
  assert.match(lines.join(''), /password=\[masked:credential\]/)
  assert.doesNotMatch(lines.join(''), /hunter2/)
})

test('a large burst is masked and delivered in order', async (t) => {
  const { server, tacho } = await setup(t, { flushIntervalMs: 1 })
  const run = tacho.startRun()
  const ids = Array.from({ length: 400 }, (_, index) => run.step('s', { index, text: `password=${'x'.repeat(5_000)}` }))
  await sleep(5)
  await tacho.flush(30_000)
  assert.deepEqual(
    server.events().map(({ eventId }) => eventId),
    ids,
  )
  assert.ok(server.events().every(({ payload }) => payload['text'] === 'password=[masked:credential]'))
  assert.ok(server.batches.every(({ bytes }) => bytes <= 1_048_576))
})

test('a large body is sent as a stream of known length, a small one as it is', async (t) => {
  const small = { method: 'POST', headers: {}, body: 'é' }
  assert.equal(streamed(small), small)
  assert.equal(streamed({ ...small, body: ['{', '}'] }).body, '{}')
  const pieces = ['é'.repeat(10_000), 'e'.repeat(20_000), '€'.repeat(10_000)]
  const { body, headers } = streamed({ method: 'POST', headers: { a: 'b' }, body: pieces })
  assert.ok(body instanceof ReadableStream)
  assert.deepEqual(headers, { a: 'b', 'content-length': '70000' })
  assert.equal(await new Response(body).text(), pieces.join(''))
  const { server, tacho } = await setup(t)
  tacho.startRun().step('s', { text: 'é'.repeat(20_000) })
  await tacho.flush()
  const [batch] = server.batches
  assert.equal(batch?.headers['content-length'], String(batch?.wireBytes))
  assert.equal(batch?.headers['transfer-encoding'], undefined)
})
