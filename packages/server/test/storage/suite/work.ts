import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { WorkClaim, WorkHold } from '../../../src/storage/work.ts'
import { issueRecord } from './issue-sample.ts'
import { ownStorage, type OpenStorage } from './open.ts'
import { newId, NOON } from './sample.ts'

const KIND = 'review_issue_record' as const
const LEASE = 60_000

export function workSuite(open: OpenStorage) {
  describe('background work', () => {
    const storage = ownStorage(open)

    /** Work of the kind, due at the given times. All tests share one queue, so each empties it. */
    async function enqueue(...due: number[]): Promise<string[]> {
      const environmentId = newId()
      const records = due.map((receivedAt) => issueRecord(environmentId, { receivedAt }))
      for (const record of records) await storage().receiveIssueRecord(record)
      return records.map(({ id }) => id)
    }

    const claim = (owner: string, given: Partial<WorkClaim> = {}) => {
      const now = given.now ?? NOON
      return storage().claimWork({ kind: KIND, owner, now, leaseUntil: now + LEASE, limit: 1000, ...given })
    }

    async function empty() {
      const items = await claim('sweeper', { now: NOON * 2 })
      await storage().finishWork({ kind: KIND, owner: 'sweeper', subjectIds: items.map(({ subjectId }) => subjectId) })
    }

    test('is taken when it is due, the longest due first, and counts its attempts', async () => {
      const [later, first, next] = await enqueue(NOON + 1, NOON - 2, NOON - 1)
      const isDue = async (now: number) => (await storage().dueWork(now)).includes(KIND)
      assert.deepEqual([await isDue(NOON - 3), await isDue(NOON - 2)], [false, true])
      assert.deepEqual(
        (await claim('a', { limit: 1 })).map(({ subjectId, attempts }) => [subjectId, attempts]),
        [[first, 1]],
      )
      assert.deepEqual(
        (await claim('a')).map(({ subjectId }) => subjectId),
        [next],
      )
      assert.deepEqual(await claim('a'), [])
      assert.deepEqual([await isDue(NOON), await isDue(NOON + 1)], [false, true])
      assert.deepEqual(
        (await claim('a', { now: NOON + 1 })).map(({ subjectId }) => subjectId),
        [later],
      )
      assert.deepEqual(
        await storage().claimWork({ kind: 'simulate', owner: 'a', now: NOON * 2, leaseUntil: 0, limit: 9 }),
        [],
      )
      await empty()
    })

    test('is due again when its lease ends, and then counts another attempt', async () => {
      const [id] = await enqueue(NOON)
      await claim('dead')
      assert.deepEqual(await claim('alive', { now: NOON + LEASE - 1 }), [])
      const [item] = await claim('alive', { now: NOON + LEASE })
      assert.deepEqual([item?.subjectId, item?.attempts], [id, 2])
      await empty()
    })

    test('cannot be renewed, returned or finished by a node that lost its lease', async () => {
      const [id = ''] = await enqueue(NOON)
      await claim('slow')
      const now = NOON + LEASE
      await claim('quick', { now })
      const slow: WorkHold = { kind: KIND, owner: 'slow', subjectIds: [id] }
      await storage().extendWork(slow, now + 10 * LEASE)
      await storage().postponeWork(slow, { dueAt: now, error: 'x', counts: true })
      await storage().finishWork(slow)
      assert.deepEqual(await claim('third', { now: now + LEASE - 1 }), [])
      const [item] = await claim('third', { now: now + LEASE })
      assert.deepEqual([item?.subjectId, item?.attempts, item?.lastError], [id, 3, null])
      await empty()
    })

    test('can be renewed, returned with a reason, and finished', async () => {
      const [id = ''] = await enqueue(NOON)
      await claim('a')
      const hold: WorkHold = { kind: KIND, owner: 'a', subjectIds: [id] }
      await storage().extendWork(hold, NOON + 2 * LEASE)
      assert.deepEqual(await claim('b', { now: NOON + 2 * LEASE - 1 }), [])
      await storage().postponeWork(hold, { dueAt: NOON + 5, error: 'it broke', counts: true })
      assert.deepEqual(await claim('b', { now: NOON + 4 }), [])
      const [again] = await claim('b', { now: NOON + 5 })
      assert.deepEqual([again?.attempts, again?.lastError], [2, 'it broke'])
      const held = { ...hold, owner: 'b' }
      await storage().postponeWork(held, { dueAt: NOON, error: null, counts: false })
      const [uncounted] = await claim('b')
      assert.equal(uncounted?.attempts, 2)
      await storage().finishWork(held)
      assert.deepEqual(await claim('c', { now: NOON * 2 }), [])
    })

    test('goes to one of several nodes that take it at once', async () => {
      const ids = await enqueue(...Array.from({ length: 100 }, () => NOON))
      const claims = await Promise.all(Array.from({ length: 20 }, (_, index) => claim(`node ${index}`, { limit: 7 })))
      const taken = claims.flat().map(({ subjectId }) => subjectId)
      assert.equal(new Set(taken).size, taken.length)
      const rest = await claim('last')
      assert.deepEqual([...taken, ...rest.map(({ subjectId }) => subjectId)].toSorted(), ids.toSorted())
      await empty()
    })

    test('reports how many items wait, and since when', async () => {
      assert.deepEqual(await storage().workBacklog(NOON), [])
      await enqueue(NOON - 5, NOON - 3, NOON + 1)
      assert.deepEqual(await storage().workBacklog(NOON), [{ kind: KIND, items: 3, due: 2, dueSince: NOON - 5 }])
      await claim('a')
      assert.deepEqual(await storage().workBacklog(NOON), [{ kind: KIND, items: 3, due: 0, dueSince: null }])
      await empty()
    })
  })
}
