/** The number of reader threads: when they start and end. The threads in these tests only count and wait. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { openReaders } from '../../../src/storage/sqlite/readers.ts'
import type { Thread } from '../../../src/storage/sqlite/thread.ts'

/** A reader that answers its calls when the test says so. */
function heldThread() {
  const calls: ((answer: unknown) => void)[] = []
  let open = true
  const thread: Thread = {
    call: () => new Promise((resolve) => calls.push(resolve)),
    alive: () => open,
    pending: () => calls.length,
    close: async () => void (open = false),
  }
  return { thread, isOpen: () => open, answer: () => calls.shift()?.(null), taken: () => calls.length }
}

async function heldReaders(t: TestContext, most: number) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const started: ReturnType<typeof heldThread>[] = []
  const delays: (() => Promise<void>)[] = []
  const readers = await openReaders(async () => {
    await delays.shift()?.()
    const one = heldThread()
    started.push(one)
    return one.thread
  }, most)
  /** Lets time pass, and then runs the callbacks that became due. */
  const pass = async (ms: number) => {
    t.mock.timers.tick(ms)
    await turn()
  }
  const read = () => void readers.call('ping', [])
  const taken = () => started.map((one) => one.taken())
  return { readers, started, delays, pass, read, taken }
}

test('a second reader starts when calls wait for 50 ms without a pause, not when many come at once', async (t) => {
  const { started, pass, read, taken } = await heldReaders(t, 2)
  for (let n = 0; n < 20; n++) read()
  await pass(49)
  for (let n = 0; n < 20; n++) started[0]?.answer()
  read()
  await pass(1_000)
  assert.equal(started.length, 1, 'no call waits for the long one')
  read()
  await pass(49)
  started[0]?.answer()
  read()
  assert.equal(started.length, 1)
  await pass(1)
  assert.equal(started.length, 2, 'busy with other calls, but never idle')
  read()
  read()
  await pass(1_000)
  assert.deepEqual(taken(), [2, 2])
  assert.equal(started.length, 2, 'never more than the most')
})

test('a second reader ends after a minute without calls, and starts again', async (t) => {
  const { started, pass, read, taken } = await heldReaders(t, 2)
  read()
  read()
  await pass(50)
  read()
  assert.deepEqual(taken(), [2, 1])
  await pass(60_000)
  assert.equal(started[1]?.isOpen(), true, 'its call is not answered')
  started[1].answer()
  await pass(59_999)
  assert.equal(started[1].isOpen(), true)
  read()
  started[1].answer()
  await pass(59_999)
  assert.equal(started[1].isOpen(), true, 'used meanwhile')
  await pass(1)
  assert.deepEqual(
    started.map((one) => one.isOpen()),
    [true, false],
  )
  read()
  await pass(50)
  read()
  assert.deepEqual(taken(), [3, 0, 1])
  await pass(60_000)
})

test('a further reader that cannot start changes nothing; after a minute, a call that waits tries again', async (t) => {
  const { started, delays, pass, read } = await heldReaders(t, 2)
  delays.push(() => Promise.reject(new Error('no memory')))
  read()
  read()
  await pass(50)
  assert.equal(started.length, 1)
  read()
  await pass(59_999)
  assert.equal(started.length, 1)
  await pass(1)
  read()
  await pass(50)
  assert.equal(started.length, 2)
})

test('a dead reader is not idle: another starts while the only living one is busy', async (t) => {
  const { started, pass, read, taken } = await heldReaders(t, 3)
  read()
  read()
  await pass(50)
  await started[0]?.thread.close()
  read()
  read()
  await pass(50)
  read()
  assert.deepEqual(taken(), [2, 2, 1])
})

test('closing the readers also ends one that is still starting, and no other starts', async (t) => {
  const { readers, started, delays, pass, read } = await heldReaders(t, 3)
  const opening = Promise.withResolvers<void>()
  delays.push(() => opening.promise)
  read()
  read()
  await pass(50)
  const closed = readers.close()
  read()
  await pass(50)
  opening.resolve()
  await closed
  assert.deepEqual(
    started.map((one) => one.isOpen()),
    [false, false],
  )
})
