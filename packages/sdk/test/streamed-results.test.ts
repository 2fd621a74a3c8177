/** A run that returns a stream, a Response or an async iterable lasts as long as its body. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { fakeTacho } from '@tacho/sdk/testing'
import { startScriptedService } from '@tacho/sdk-conformance/scripted-service.ts'
import { Tacho } from '../src/index.ts'

/** The recorded status of a run after `run` returned, and again after the host used the result. */
async function play<T>(t: TestContext, make: (tacho: Tacho) => T, use: (result: Awaited<T>) => Promise<unknown>) {
  const fake = fakeTacho()
  t.after(fake.close)
  const result = await fake.tacho.run(async (run) => {
    run.step('begun')
    return await make(fake.tacho)
  })
  const [before] = await fake.runs()
  await use(result)
  const [after] = await fake.runs()
  const labels = after?.events.map(({ label }) => label)
  return { result, before: before?.status, after: after?.status, labels, error: after?.events.at(-1)?.payload['error'] }
}

/** A stream with two parts and a tool call between them. `then` ends it. */
function parts(tacho: Tacho, then: (controller: ReadableStreamDefaultController<string>) => void) {
  let part = 0
  return new ReadableStream<string>({
    async pull(controller) {
      await new Promise((resolve) => setImmediate(resolve))
      if (++part > 2) return then(controller)
      tacho.record({ type: 'NOTE', label: `part ${part}` })
      controller.enqueue(`${part}`)
    },
  })
}
const closing = (tacho: Tacho) => parts(tacho, (controller) => controller.close())
const breaking = (tacho: Tacho) => parts(tacho, (controller) => controller.error(new RangeError('broken')))
const silent = () => new ReadableStream<string>({ start: (controller) => controller.enqueue('1') })

async function read(stream: ReadableStream<string>): Promise<string> {
  let text = ''
  for await (const part of stream) text += part
  return text
}

test('a stream ends its run when it ends, with what happens in it', async (t) => {
  const { before, after, labels } = await play(t, closing, async (stream) => assert.equal(await read(stream), '12'))
  assert.deepEqual([before, after], ['RUNNING', 'COMPLETED'])
  assert.deepEqual(labels, ['begun', 'part 1', 'part 2', 'completed'])
})

test('a stream that breaks fails its run, and the host gets the same error', async (t) => {
  const { before, after, error } = await play(t, breaking, (stream) => assert.rejects(read(stream), RangeError))
  assert.deepEqual([before, after, error], ['RUNNING', 'FAILED', 'RangeError: broken'])
})

test('a stream that its reader leaves cancels its run, also while it waits for a part', async (t) => {
  const left = await play(t, silent, async (stream) => {
    const reader = stream.getReader()
    await reader.read()
    const waiting = reader.read()
    await reader.cancel(new Error('the reader left'))
    assert.equal((await waiting).done, true)
  })
  assert.deepEqual([left.before, left.after, left.error], ['RUNNING', 'CANCELLED', 'Error: the reader left'])
  const unread = await play(t, silent, (stream) => stream.cancel())
  assert.deepEqual([unread.before, unread.after, unread.error], ['RUNNING', 'CANCELLED', undefined])
})

test('a Response keeps its class, status, headers and cookies', async (t) => {
  class Own extends Response {
    readonly isOwn = true
  }
  const headers = [
    ['x-own', 'yes'],
    ['set-cookie', 'a=1'],
    ['set-cookie', 'b=2'],
  ] as [string, string][]
  const make = (tacho: Tacho) =>
    new Own(closing(tacho).pipeThrough(new TextEncoderStream()), { status: 201, statusText: 'Made', headers })
  const { result, before, after } = await play(t, make, async (reply) => assert.equal(await reply.text(), '12'))
  assert.deepEqual([before, after], ['RUNNING', 'COMPLETED'])
  assert.ok(result instanceof Own && result.isOwn)
  assert.deepEqual([result.status, result.statusText, result.headers.get('x-own')], [201, 'Made', 'yes'])
  assert.deepEqual(result.headers.getSetCookie(), ['a=1', 'b=2'])
})

test('a Response of a class with another constructor stays usable', async (t) => {
  class Odd extends Response {
    constructor(options: { text: ReadableStream<Uint8Array> }) {
      super(options.text)
    }
  }
  const make = (tacho: Tacho) => new Odd({ text: closing(tacho).pipeThrough(new TextEncoderStream()) })
  const { after } = await play(t, make, async (reply) => assert.equal(await reply.text(), '12'))
  assert.equal(after, 'COMPLETED')
})

test('an async iterable ends its run with its last step, or when the host leaves the loop', async (t) => {
  const iterable = (tacho: Tacho, end: () => IteratorResult<string>) => {
    let part = 0
    const next = async () => {
      if (++part > 2) return end()
      tacho.record({ type: 'NOTE', label: `part ${part}` })
      return { done: false, value: `${part}` }
    }
    return { extra: 'kept', [Symbol.asyncIterator]: () => ({ next }) }
  }
  const all = async (given: AsyncIterable<string>) => {
    for await (const _ of given) continue
  }
  const whole = await play(t, (tacho) => iterable(tacho, () => ({ done: true, value: undefined })), all)
  assert.deepEqual([whole.before, whole.after, whole.result.extra], ['RUNNING', 'COMPLETED', 'kept'])
  assert.deepEqual(whole.labels, ['begun', 'part 1', 'part 2', 'completed'])
  const fail = () => {
    throw new RangeError('broken')
  }
  const failed = await play(
    t,
    (tacho) => iterable(tacho, fail),
    (given) => assert.rejects(all(given), RangeError),
  )
  assert.deepEqual([failed.before, failed.after], ['RUNNING', 'FAILED'])
  const left = await play(
    t,
    (tacho) => iterable(tacho, fail),
    async (given) => {
      for await (const _ of given) break
    },
  )
  assert.deepEqual([left.before, left.after], ['RUNNING', 'CANCELLED'])
})

test("a stream of Node ends its run with its events, and stays the host's own", async (t) => {
  const made = Readable.from(['1', '2'])
  const whole = await play(
    t,
    () => made,
    async (stream) => assert.equal((await stream.toArray()).join(''), '12'),
  )
  assert.equal(whole.result, made)
  assert.deepEqual([whole.before, whole.after], ['RUNNING', 'COMPLETED'])
  const destroy = (error?: Error) => async (stream: Readable) => {
    const closed = new Promise((resolve) => stream.once('error', () => undefined).once('close', resolve))
    stream.destroy(error)
    await closed
  }
  // A server reads the body later, outside the run.
  const worked = await play(
    t,
    (tacho) => Readable.from(parts(tacho, (controller) => controller.close())),
    (stream) => stream.toArray(),
  )
  assert.deepEqual([worked.after, worked.labels], ['COMPLETED', ['begun', 'part 1', 'part 2', 'completed']])
  const failed = await play(t, () => Readable.from(['1']), destroy(new RangeError('broken')))
  assert.deepEqual([failed.after, failed.error], ['FAILED', 'RangeError: broken'])
  const left = await play(t, () => Readable.from(['1']), destroy())
  assert.equal(left.after, 'CANCELLED')
})

test('what has no body of its own ends the run at once, as the same object', async (t) => {
  const locked = closing(fakeTacho().tacho)
  locked.getReader()
  const frozen = Object.freeze({ [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true, value: 1 }) }) })
  const lambda = { statusCode: 200, body: 'Hello' }
  for (const value of [locked, frozen, lambda, new Response(null), { body: closing(fakeTacho().tacho) }]) {
    const { before, result } = await play(
      t,
      () => value as object,
      async () => undefined,
    )
    assert.equal(before, 'COMPLETED')
    assert.equal(result, value)
  }
})

test('withRun delivers before a streamed body closes, or gives its delivery to waitUntil', async (t) => {
  const service = await startScriptedService()
  t.after(service.close)
  const tacho = new Tacho({ apiKey: 'key', baseUrl: service.url, flushIntervalMs: 3_600_000 })
  const body = await tacho.withRun(() => closing(tacho))
  await read(body)
  assert.deepEqual([tacho.counters().accepted, tacho.counters().queued], [3, 0])
  const handed: Promise<unknown>[] = []
  const waitUntil = (promise: Promise<unknown>) => void handed.push(promise)
  const later = await tacho.withRun({ waitUntil }, () => closing(tacho))
  assert.equal(handed.length, 1)
  await read(later)
  await handed[0]
  assert.deepEqual([tacho.counters().accepted, tacho.counters().queued], [6, 0])
  await tacho.shutdown()
})
