import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { WorkClaim, WorkHold } from '../../../../src/storage/engine/work.ts'
import { issueRecord } from '../issues/issue-sample.ts'
import { ownStorage, type OpenStorage } from '../open.ts'
import { newHome, type Home } from '../policies/configuration-sample.ts'
import { newId, NOON } from '../sample.ts'

const KIND = 'review_issue_record' as const
const LEASE = 60_000

export function workSuite(open: OpenStorage) {
  describe('background work', () => {
    const storage = ownStorage(open)
    const environmentId = newId()

    /** Work of the kind, due at the given times. All tests share one queue, so each empties it. */
    async function enqueue(...due: number[]): Promise<string[]> {
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
      await storage().finishWork({ kind: KIND, owner: 'sweeper', items })
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
      const slow: WorkHold = { kind: KIND, owner: 'slow', items: [{ environmentId, subjectId: id }] }
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
      const hold: WorkHold = { kind: KIND, owner: 'a', items: [{ environmentId, subjectId: id }] }
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

    test('of one id in two environments is two items, because imports choose ids', async () => {
      const id = newId()
      const other = newId()
      const places = [environmentId, other]
      for (const place of places) await storage().receiveIssueRecord(issueRecord(place, { id, receivedAt: NOON }))
      const items = await claim('a')
      assert.deepEqual(
        new Set(items.map((item) => `${item.environmentId} ${item.subjectId}`)),
        new Set(places.map((place) => `${place} ${id}`)),
      )
      await storage().finishWork({ kind: KIND, owner: 'a', items: [{ environmentId: other, subjectId: id }] })
      const [left, ...more] = await claim('b', { now: NOON + LEASE })
      assert.deepEqual([left?.environmentId, more], [environmentId, []])
      await empty()
    })

    test('is taken in turn from the workspaces, and one leaves as much free for the others as it holds', async () => {
      const [greedy, modest] = [await newHome(storage()), await newHome(storage())]
      const enqueueFor = async (place: string, count: number, receivedAt: number) => {
        for (let n = 0; n < count; n++) {
          await storage().receiveIssueRecord(issueRecord(place, { id: newId(), receivedAt }))
        }
      }
      // One environment of this workspace has all old items.
      await enqueueFor(greedy.development, 12, NOON - 10)
      await enqueueFor(greedy.production, 2, NOON - 5)
      await enqueueFor(modest.development, 1, NOON)
      await enqueueFor(modest.production, 1, NOON + 1)
      const take = async (limit: number, held: [string, number][] = []) => {
        const given = { kind: KIND, owner: 'a', now: NOON, leaseUntil: NOON + LEASE, limit }
        const items = await storage().claimWorkInTurn(given, held)
        return items.map((item) => [item.workspaceId, item.environmentId])
      }
      const of = (home: Home, name: 'development' | 'production') => [home.workspaceId, home[name]]
      const first = await take(10)
      const counts = [
        of(modest, 'development'),
        of(modest, 'production'),
        of(greedy, 'development'),
        of(greedy, 'production'),
      ].map((place) => first.filter((each) => each.join() === place.join()).length)
      // Four places stay free for other workspaces.
      assert.deepEqual(counts, [1, 0, 3, 2])
      assert.deepEqual(await take(4, [[greedy.workspaceId, 5]]), [])
      assert.deepEqual(await take(4, [[greedy.workspaceId, 3]]), [of(greedy, 'development')])
      assert.deepEqual(await take(1, [[greedy.workspaceId, 1]]), [])
      assert.deepEqual(await take(1, [[modest.workspaceId, 30]]), [of(greedy, 'development')])
      await empty()
    })

    test('reports how many items wait, and since when', async () => {
      // A new environment already has items of other kinds.
      const backlog = async () => (await storage().workBacklog(NOON)).filter(({ kind }) => kind === KIND)
      assert.deepEqual(await backlog(), [])
      await enqueue(NOON - 5, NOON - 3, NOON + 1)
      assert.deepEqual(await backlog(), [{ kind: KIND, items: 3, due: 2, dueSince: NOON - 5 }])
      await claim('a')
      assert.deepEqual(await backlog(), [{ kind: KIND, items: 3, due: 0, dueSince: null }])
      await empty()
    })
  })
}
