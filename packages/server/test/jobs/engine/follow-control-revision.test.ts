import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { followControlRevision } from '@tacho/server/jobs/engine/timers.ts'
import { eventually } from '../../setup/eventually.ts'
import { startService, event } from '../../setup/service.ts'

test('every listener gets the revision and the time of the query, and nothing while the store fails', async () => {
  const answers = [7, new Error('away'), 8]
  const errors: unknown[] = []
  const { promise: done, resolve } = Promise.withResolvers<void>()
  const heard: [number, number][] = []
  const before = performance.now()
  const job = followControlRevision({
    intervalMs: 1,
    onError: (error) => errors.push(error),
    storage: {
      async controlRevision() {
        const answer = answers.shift() ?? 8
        if (answer instanceof Error) throw answer
        return answer
      },
    },
    listeners: [
      { observeRevision: (revision, askedAt) => void heard.push([revision, askedAt]) },
      { observeRevision: (revision) => void (revision === 8 && resolve()) },
    ],
  })
  await done
  await job.stop()
  assert.deepEqual(heard.map(([revision]) => revision).slice(0, 2), [7, 8])
  assert.ok(heard.every(([, askedAt]) => askedAt >= before && askedAt <= performance.now()))
  assert.equal(errors.length, 1)
})

test('a node learns within 5 seconds that a key was revoked elsewhere', async () => {
  const service = await startService()
  try {
    const key = await service.newKey({ scopes: ['events:write'] })
    const [, id] = key.split('_')
    assert.equal((await service.record([event()], key)).status, 200)
    // Change the store as a transaction of another node would.
    const db = new Database(path.join(service.directory, 'tacho.db'))
    db.prepare('UPDATE api_keys SET revoked_at = 1 WHERE id = ?').run(id)
    db.exec('UPDATE control SET revision = revision + 1')
    db.close()
    const isRejected = async () => (await service.record([event()], key)).status === 401
    await eventually(isRejected, 'a rejected key', 5_000)
  } finally {
    await service.close()
  }
})
