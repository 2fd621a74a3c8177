import assert from 'node:assert/strict'
import { test } from 'node:test'
import { append, event, newId, NOON, runOf } from '../suite/sample.ts'
import { openStore } from './temporary.ts'

test('a run of 30,000 events can be paged by time, by arrival and from its middle', async (t) => {
  const storage = await openStore(t)
  const env = newId()
  const count = 30_000
  // Times decrease, so that arrival order and time order differ.
  for (let n = 0; n < count; n += 500) {
    const events = Array.from({ length: 500 }, (_, i) => event({ eventId: `e${n + i}`, time: NOON - n - i }))
    await append(storage, env, ...events)
  }
  const { id, eventCount } = await runOf(storage, env)
  assert.equal(eventCount, count)
  const first = await storage.listEvents(env, id, { limit: 200, pageBytes: 4_194_304, after: null })
  assert.deepEqual([first.rows.length, first.rows[0]?.eventId, first.more], [200, `e${count - 1}`, true])
  const middle = { limit: 200, order: 'time', after: { time: NOON - count / 2, seq: 0 } } as const
  assert.equal((await storage.listEventRows(env, id, middle)).rows[0]?.eventId, `e${count / 2}`)
  const tail = { limit: 200, order: 'arrival', after: { time: 0, seq: count - 3 } } as const
  const rows = (await storage.listEventRows(env, id, tail)).rows.map(({ eventId }) => eventId)
  assert.deepEqual(rows, [`e${count - 3}`, `e${count - 2}`, `e${count - 1}`])
  assert.equal((await storage.findEvent(env, 'run', 'e0'))?.position, count)
})
