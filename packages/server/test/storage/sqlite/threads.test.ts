import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import { startReplacedThread, startThread, type ThreadEnd } from '../../../src/storage/sqlite/thread.ts'
import { StorageError } from '../../../src/storage/engine/store.ts'
import { append, batch, event, newId, NOON, runOf } from '../suite/sample.ts'
import { openStore, temporaryDirectory } from './temporary.ts'
import { eventually } from '../../setup/eventually.ts'

const failed = (code: string) => (error: unknown) => error instanceof StorageError && error.code === code

test('a full queue refuses at once, and writesRefused says so before', async (t) => {
  const payload = JSON.stringify({ text: 'x'.repeat(100_000) })
  const storage = await openStore(t, { queueBytes: 250_000 })
  const env = newId()
  const sent = [1, 2, 3, 4].map((n) => append(storage, env, event({ runId: `run ${n}`, payload })))
  const results = await Promise.allSettled(sent)
  assert.deepEqual(
    results.map((result) => result.status === 'fulfilled' || failed('overloaded')(result.reason)),
    [true, true, true, true],
  )
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'rejected'],
  )
  assert.equal(storage.writesRefused(), null)
  assert.equal(storage.gauges().queuedBytes, 0)
  const one = append(storage, env, event({ payload: JSON.stringify({ text: 'x'.repeat(260_000) }) }))
  assert.equal(storage.writesRefused(), 'overloaded')
  assert.ok(storage.gauges().queuedBytes > 250_000)
  assert.deepEqual(await one, ['stored'])
})

test('closing finishes acts that were called before, and refuses later ones', async (t) => {
  const directory = temporaryDirectory(t)
  const storage = await openStore(t, { directory })
  const env = newId()
  const events = Array.from({ length: 50 }, () => event())
  const sent = events.map((one) => append(storage, env, one))
  const read = storage.listRuns(env, {}, { limit: 1, after: null })
  await storage.close()
  assert.deepEqual(new Set((await Promise.all(sent)).flat()), new Set(['stored']))
  await read
  await assert.rejects(append(storage, env, event()), failed('storage_unavailable'))
  await assert.rejects(storage.findRun(env, 'run'), failed('storage_unavailable'))
  assert.equal(storage.writesRefused(), 'storage_unavailable')
  assert.equal((await runOf(await openStore(t, { directory }), env)).eventCount, 50)
})

test('commits are counted, and waiting batches share one', async (t) => {
  const storage = await openStore(t)
  const env = newId()
  const before = storage.gauges()
  await Promise.all(Array.from({ length: 100 }, () => append(storage, env, event(), event())))
  const { commits, committedEvents, actMs, storeBytes } = storage.gauges()
  assert.deepEqual([committedEvents, actMs], [200, before.actMs])
  assert.ok(commits < 100, `${commits} commits`)
  assert.ok((storeBytes ?? 0) > 0)
  await storage.secret('name', 'value')
  assert.ok(storage.gauges().actMs > actMs, 'time of other writes')
})

test('an act that fails for a reason outside the store fails alone', async (t) => {
  const storage = await openStore(t)
  const row = { id: 'same', name: 'one', createdAt: NOON }
  await storage.createWorkspace(row, [])
  await assert.rejects(storage.createWorkspace({ ...row, name: 'two' }, []), /UNIQUE/)
  assert.equal(await storage.createWorkspace({ ...row, id: 'other', name: 'two' }, []), 'created')
})

test('a thread that dies rejects all its pending acts, and reports once', async (t) => {
  const directory = temporaryDirectory(t)
  const storage = await openStore(t, { directory })
  const file = path.join(directory, 'tacho.db')
  const deaths: ThreadEnd[] = []
  const thread = await startThread({ name: 'writer', file, heapMib: 64, onDeath: (error) => deaths.push(error) })
  // An invalid message, which only a bug can send, must cause an error and not a call without an answer.
  const acts = [thread.call('appendEvents', [null]), thread.call('ping', []), thread.call('ping', [])]
  for (const act of acts) await assert.rejects(act, failed('storage_unavailable'))
  assert.equal(thread.alive(), false)
  assert.deepEqual(
    deaths.map(({ outOfMemory }) => outOfMemory),
    [false],
  )
  await assert.rejects(thread.call('ping', []), failed('storage_unavailable'))
  await thread.close()
  await storage.ping()
})

/** A message that needs more memory than a thread of 32 MiB has. */
const hugeMessage = () => Array.from({ length: 1_000 }, (_, at) => `${at}${'x'.repeat(100_000)}`)

for (const name of ['writer', 'reader'] as const) {
  test(`a ${name} that runs out of memory rejects its pending acts as retryable, and is replaced`, async (t) => {
    const directory = temporaryDirectory(t)
    const env = newId()
    const storage = await openStore(t, { directory })
    await append(storage, env, event())
    await storage.close()
    const troubles: Error[] = []
    const file = path.join(directory, 'tacho.db')
    const thread = await startReplacedThread(
      (onDeath) => startThread({ name, file, heapMib: 32, onDeath }),
      (error) => troubles.push(error),
    )
    for (let deaths = 0; deaths < 3; deaths++) {
      const lost = [thread.call('findRun', [env, hugeMessage()]), thread.call('ping', [])]
      for (const call of lost) await assert.rejects(call, failed('storage_unavailable'))
      assert.equal(thread.alive(), false)
      await assert.rejects(thread.call('ping', []), failed('storage_unavailable'))
      await eventually(() => thread.alive(), 'a new thread')
      // Acknowledged events are stored, and the new thread reads and writes.
      if (name === 'reader') assert.ok(await thread.call('findRun', [env, 'run']))
      else await thread.call('createWorkspace', [{ id: newId(), name: `after ${deaths}`, createdAt: NOON }, []])
    }
    await thread.close()
    assert.deepEqual(troubles, [])
  })
}

test('a thread that ends for a reason other than memory makes the store unavailable and is not replaced', async (t) => {
  const directory = temporaryDirectory(t)
  await (await openStore(t, { directory })).close()
  const troubles: Error[] = []
  const file = path.join(directory, 'tacho.db')
  const thread = await startReplacedThread(
    (onDeath) => startThread({ name: 'writer', file, heapMib: 64, onDeath }),
    (error) => troubles.push(error),
  )
  await assert.rejects(thread.call('appendEvents', [null]), failed('storage_unavailable'))
  assert.equal(troubles.length, 1)
  assert.equal(thread.alive(), false)
  await thread.close()
})

test('a thread that cannot open the store fails at once', async (t) => {
  const deaths: ThreadEnd[] = []
  const file = path.join(temporaryDirectory(t), 'nothing', 'tacho.db')
  const start = startThread({ name: 'reader', file, heapMib: 64, onDeath: (error) => deaths.push(error) })
  await assert.rejects(start, failed('storage_unavailable'))
  assert.equal(deaths.length, 0)
})

test('every commit is durable: synchronous is FULL after writes, and the journal mode is WAL', async (t) => {
  const storage = await openStore(t)
  await storage.appendEvents(batch(newId(), [event()]))
  const durability = (await storage.inspect()).find(({ name }) => name === 'durability')
  assert.deepEqual(
    [durability?.ok, durability?.detail],
    [true, 'Each acknowledged commit is on disk (journal wal, synchronous 2)'],
  )
})
