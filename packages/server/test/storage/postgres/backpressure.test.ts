/** A slow database: waiting batches are bounded, and accepted ones are not lost. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { openPostgresStorage } from '../../../src/storage/postgres/open.ts'
import { append, event, newId } from '../suite/sample.ts'
import { refusal, useTestDatabase } from './store-trouble.ts'

const { url, whileLocked, withStorage } = useTestDatabase()

test('a slow database fills the queue, which then refuses at once and keeps what it has accepted', async () => {
  await withStorage({ queueBytes: 20_000, poolSize: 2 }, async (storage) => {
    const env = newId()
    const sized = (bytes: number) => event({ payload: JSON.stringify({ text: 'x'.repeat(bytes) }) })
    const writing: Promise<unknown>[] = []
    await whileLocked('events', async () => {
      writing.push(append(storage, env, sized(9_000)), append(storage, env, sized(9_000)))
      await assert.rejects(append(storage, env, sized(9_000)), refusal('overloaded'))
      assert.ok(storage.gauges().queuedBytes > 18_000)
      assert.equal(storage.writesRefused(), null)
    })
    assert.deepEqual((await Promise.all(writing)).flat(), ['stored', 'stored'])
    assert.equal(storage.gauges().queuedBytes, 0)
    // A batch larger than the whole queue is accepted when nothing else waits.
    await whileLocked('events', async () => {
      writing.push(append(storage, env, sized(100_000)))
      assert.equal(storage.writesRefused(), 'overloaded')
    })
    assert.deepEqual(await writing.at(-1), ['stored'])
    assert.equal(storage.writesRefused(), null)
  })
})

test('a transaction never waits for a turn of the event loop while rows are locked', async (t) => {
  await withStorage({}, async (storage) => {
    const env = newId()
    await append(storage, env, event())
    let isOpen = false
    let turns = 0
    const send = pg.Client.prototype.query as (this: pg.Client, ...args: unknown[]) => unknown
    t.mock.method(pg.Client.prototype, 'query', function (this: pg.Client, ...args: unknown[]) {
      if (args[0] === 'BEGIN') isOpen = true
      if (args[0] === 'COMMIT') isOpen = false
      return send.apply(this, args)
    })
    const later = globalThis.setImmediate
    t.mock.method(globalThis, 'setImmediate', ((...args: Parameters<typeof setImmediate>) => {
      if (isOpen) turns++
      return later(...args)
    }) as typeof setImmediate)
    const known = event()
    assert.deepEqual(await append(storage, env, known, event({ runId: 'new' })), ['stored', 'stored'])
    assert.deepEqual(await append(storage, env, known, event()), ['duplicate', 'stored'])
    assert.equal(turns, 0)
  })
})

test('closing waits for the writes under way', async () => {
  const env = newId()
  const storage = await openPostgresStorage({ url: url() })
  const writing = Promise.all(Array.from({ length: 30 }, (_, n) => append(storage, env, event({ runId: `run ${n}` }))))
  await storage.close()
  assert.deepEqual(new Set((await writing).flat()), new Set(['stored']))
})
