import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { RejectionRow } from '../../../../src/storage/record/events.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { batch, event, newId, NOON } from '../sample.ts'

export function rejectionsSuite(open: OpenStorage) {
  describe('rejections', () => {
    const storage = sharedStorage(open)
    const row = (given: Partial<RejectionRow> = {}): RejectionRow => ({
      runId: 'run',
      eventId: 'event',
      code: 'too_long',
      message: null,
      rejectedAt: NOON,
      ...given,
    })
    const keep = (env: string, ...rejections: RejectionRow[]) => storage().appendEvents(batch(env, [], { rejections }))

    test('are remembered by run and event, the newest of each', async () => {
      const env = newId()
      await storage().appendEvents(batch(env, [event()], { rejections: [row(), row({ eventId: 'second' })] }))
      const newer = row({ code: 'empty', message: 'its name is empty', rejectedAt: NOON + 1 })
      await keep(env, newer)
      assert.deepEqual(await storage().findRejection(env, 'run', 'event'), newer)
      assert.deepEqual(await storage().findRejection(env, 'run', 'second'), row({ eventId: 'second' }))
    })

    test('are also remembered when only the store found the event too old', async () => {
      const env = newId()
      const [stored, absent] = [event({ eventId: 'stored' }), event({ eventId: 'absent' })]
      await storage().appendEvents(batch(env, [stored]))
      const aged = [stored, absent].map((each) => ({ ...each, onlyIfStored: true }))
      await storage().appendEvents(batch(env, [...aged, event({ runId: 'none', eventId: 'x', onlyIfStored: true })]))
      const old = { code: 'timestamp_too_old' } as const
      assert.equal(await storage().findRejection(env, 'run', 'stored'), null)
      assert.deepEqual(await storage().findRejection(env, 'run', 'absent'), row({ eventId: 'absent', ...old }))
      assert.deepEqual(await storage().findRejection(env, 'none', 'x'), row({ runId: 'none', eventId: 'x', ...old }))
    })

    test('are found only in their environment and under their run', async () => {
      const env = newId()
      await keep(env, row())
      assert.equal(await storage().findRejection(newId(), 'run', 'event'), null)
      assert.equal(await storage().findRejection(env, 'event', 'run'), null)
      assert.equal(await storage().findRejection(env, 'run', 'other'), null)
      assert.equal(await storage().findRun(env, 'run'), null)
    })

    test('are deleted, oldest first, when there are too many', async () => {
      const env = newId()
      const rows = Array.from({ length: 12_000 }, (_, n) => row({ eventId: `e${n}`, rejectedAt: NOON + n }))
      for (let n = 0; n < rows.length; n += 1000) await keep(env, ...rows.slice(n, n + 1000))
      assert.equal(await storage().findRejection(env, 'run', 'e0'), null)
      assert.deepEqual(await storage().findRejection(env, 'run', 'e11999'), rows[11_999])
      assert.deepEqual(await storage().findRejection(env, 'run', 'e2000'), rows[2000])
    })
  })
}
