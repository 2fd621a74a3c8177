import assert from 'node:assert/strict'
import { on } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'

interface Report {
  after: 'work' | 'a collection'
  /** Milliseconds. */
  at: number
  collections: number
  /** Bytes, after the collection. */
  heap: number
}

test('an idle thread gives its garbage back, and again when its heap has grown; a busy one is left alone', async (t) => {
  const thread = new Worker(new URL('watched-thread.ts', import.meta.url))
  t.after(() => thread.terminate())
  let reported = 0
  thread.on('message', () => reported++)
  const reports = on(thread, 'message') as AsyncIterableIterator<[Report]>
  const next = async () => (await reports.next()).value[0] as Report

  const work = await next()
  assert.deepEqual([work.after, work.collections], ['work', 0])
  const first = await next()
  assert.deepEqual([first.after, first.collections], ['a collection', 1])
  assert.ok(first.heap < 25e6, `${first.heap} bytes`)
  assert.ok(first.at - work.at > 700, 'a thread that has worked waits for five looks, not for one as after its start')
  // More looks than a later collection waits for.
  await sleep(1_500)
  assert.equal(reported, 2, 'nothing has been allocated since')
  thread.postMessage('allocate')
  assert.equal((await next()).collections, 2)
})
