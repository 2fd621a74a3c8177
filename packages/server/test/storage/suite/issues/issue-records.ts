import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { IssueRecordRow } from '../../../../src/storage/issues/issues.ts'
import { auditEntry, decideAll, issueRecord, onlyIssue, reviewed } from './issue-sample.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, newId, NOON, runOf } from '../sample.ts'

export function issueRecordsSuite(open: OpenStorage) {
  describe('issue records', () => {
    const storage = sharedStorage(open)
    const work = async () => (await storage().workBacklog(NOON * 2)).reduce((sum, { items }) => sum + items, 0)

    test('are stored whole, with texts as they were sent', async () => {
      const environmentId = newId()
      const record = issueRecord(environmentId, {
        recordKind: 'RECOVERY',
        runId: 'r 1',
        sessionId: 's',
        eventId: 'e',
        policyId: 'p',
        promptVersionId: newId(),
        payload: '{"n":1.0,"n":9007199254740993,"\\u0000":"\\u0000"}',
        evidence: '{ "__proto__" : {} }',
      })
      const { id, evidence } = record
      assert.deepEqual(await storage().receiveIssueRecord(record), { id, status: 'RECEIVED', evidence, isNew: true })
      const { environmentId: _, ...fields } = record
      assert.deepEqual(await storage().findIssueRecord(environmentId, record.id), {
        ...fields,
        seenAt: NOON,
        origin: 'CLIENT',
        sameAs: null,
        status: 'RECEIVED',
        statusAt: record.receivedAt,
        failure: null,
        fingerprint: null,
        issueId: null,
        run: null,
        storedEventId: null,
      })
      assert.equal(await storage().findIssueRecord(newId(), record.id), null)
      assert.equal(await storage().findIssueRecord(environmentId, newId()), null)
      await decideAll(storage(), environmentId, [record.id])
    })

    test('the first write wins, and a repeated one gets the current status', async () => {
      const environmentId = newId()
      const first = issueRecord(environmentId, { payload: '{"a":1}' })
      const again = { ...first, id: newId(), payload: '{"a":2}', recordKind: 'RECOVERY' as const }
      await storage().receiveIssueRecord(first)
      const waiting = await work()
      const { id, evidence } = first
      const repeated = (status: string) => ({ id, status, evidence, isNew: false })
      assert.deepEqual(await storage().receiveIssueRecord(again), repeated('RECEIVED'))
      await storage().startReview(environmentId, [first.id], NOON)
      assert.equal((await storage().receiveIssueRecord(again))?.status, 'EVALUATING')
      assert.equal(await work(), waiting)
      await decideAll(storage(), environmentId, [first.id])
      assert.deepEqual(await storage().receiveIssueRecord(again), repeated('DECIDED'))
      const kept = await storage().findIssueRecord(environmentId, first.id)
      assert.deepEqual([kept?.payload, kept?.recordKind], [first.payload, 'DETECTION'])
      assert.equal(await work(), waiting - 1)
      assert.equal((await onlyIssue(storage(), environmentId)).occurrences, 1)
    })

    test('the same id from another client or tenant is another record, and concatenated ids do not collide', async () => {
      const environmentId = newId()
      const given = { sdkInstanceId: 'ab', clientRecordId: 'c' }
      const others = [
        issueRecord(environmentId, given),
        issueRecord(environmentId, { ...given, sdkInstanceId: 'a', clientRecordId: 'bc' }),
        issueRecord(environmentId, { ...given, sdkInstanceId: 'x' }),
        issueRecord(newId(), given),
      ]
      for (const record of others) assert.equal((await storage().receiveIssueRecord(record))?.isNew, true)
    })

    test('when many with one id race, one is stored', async () => {
      const environmentId = newId()
      const clientRecordId = newId()
      const racing = Array.from({ length: 30 }, () => issueRecord(environmentId, { clientRecordId }))
      const answers = await Promise.all(racing.map((record) => storage().receiveIssueRecord(record)))
      assert.equal(answers.filter((one) => one?.isNew).length, 1)
      assert.equal(new Set(answers.map((one) => one?.id)).size, 1)
      assert.equal((await storage().listIssueRecords(environmentId, {}, { limit: 9, after: null })).rows.length, 1)
    })

    test('are listed newest first by status and kind, page by page, within their environment', async () => {
      const environmentId = newId()
      const records = ['a', 'b', 'c', 'd'].map((clientRecordId) => issueRecord(environmentId, { clientRecordId }))
      const recovery = issueRecord(environmentId, { recordKind: 'RECOVERY' })
      for (const record of [...records, recovery]) await storage().receiveIssueRecord(record)
      await storage().receiveIssueRecord(issueRecord(newId()))
      await decideAll(storage(), environmentId, [records[1]?.id ?? ''])
      const list = async (filter: object, limit = 9, after: string | null = null) =>
        (await storage().listIssueRecords(environmentId, filter, { limit, after })).rows.map(
          ({ clientRecordId }) => clientRecordId,
        )
      assert.deepEqual(await list({}), [recovery.clientRecordId, 'd', 'c', 'b', 'a'])
      assert.deepEqual(await list({}, 2), [recovery.clientRecordId, 'd'])
      assert.deepEqual(await list({}, 2, records[3]?.id), ['c', 'b'])
      assert.deepEqual(await list({ status: 'DECIDED' }), ['b'])
      assert.deepEqual(await list({ recordKind: 'RECOVERY' }), [recovery.clientRecordId])
      assert.deepEqual(await list({ status: 'RECEIVED', recordKind: 'DETECTION' }, 1, records[2]?.id), ['a'])
    })

    test('an event is found only together with its run', async () => {
      const environmentId = newId()
      await append(storage(), environmentId, event({ runId: 'one', eventId: 'e' }), event({ runId: 'two' }))
      const given: [string | null, string | null][] = [
        ['one', 'e'],
        ['two', 'e'],
        [null, 'e'],
        ['none', 'e'],
        ['one', null],
      ]
      const found: unknown[] = []
      for (const [runId, eventId] of given) {
        const record = issueRecord(environmentId, { runId, eventId })
        await storage().receiveIssueRecord(record)
        const row = await storage().findIssueRecord(environmentId, record.id)
        assert.deepEqual([row?.runId, row?.eventId], [runId, eventId])
        found.push([row?.run, row?.storedEventId])
      }
      const [one, two] = [await runOf(storage(), environmentId, 'one'), await runOf(storage(), environmentId, 'two')]
      assert.deepEqual(found, [
        [one.id, 'e'],
        [two.id, null],
        [null, null],
        [null, null],
        [one.id, null],
      ])
    })

    test('only a waiting record is taken into review, and a decision counts once', async () => {
      const environmentId = newId()
      const record = issueRecord(environmentId)
      await storage().receiveIssueRecord(record)
      assert.deepEqual(await storage().startReview(newId(), [record.id], NOON), [])
      const { id, recordKind, runId, eventId, detectionType, policyId, payload } = record
      const inReview = { id, recordKind, runId, eventId, detectionType, policyId, payload }
      assert.deepEqual(await storage().startReview(environmentId, [newId(), record.id], NOON + 1), [inReview])
      // A review that is taken over from a dead node continues unchanged.
      assert.deepEqual(await storage().startReview(environmentId, [record.id], NOON + 2), [inReview])
      assert.equal((await storage().findIssueRecord(environmentId, record.id))?.statusAt, NOON + 1)
      const all = await Promise.all(Array.from({ length: 8 }, () => decideAll(storage(), environmentId, [record.id])))
      assert.equal(all.filter(({ opened }) => opened.length > 0).length, 1)
      assert.equal((await onlyIssue(storage(), environmentId)).occurrences, 1)
      assert.deepEqual(await storage().startReview(environmentId, [record.id], NOON), [])
    })

    test('a failed record has a reason and no work, and can be retried once', async () => {
      const environmentId = newId()
      const record = issueRecord(environmentId)
      await storage().receiveIssueRecord(record)
      await storage().startReview(environmentId, [record.id], NOON)
      const waiting = await work()
      await storage().failIssueRecord(environmentId, record.id, 'It cannot be read', NOON + 5)
      const state = ({ status, statusAt, failure }: IssueRecordRow) => ({ status, statusAt, failure })
      const failed = await storage().findIssueRecord(environmentId, record.id)
      assert.deepEqual(failed && state(failed), { status: 'FAILED', statusAt: NOON + 5, failure: 'It cannot be read' })
      assert.equal(await work(), waiting - 1)
      assert.deepEqual(await decideAll(storage(), environmentId, [record.id]), { opened: [], regressed: [] })

      const retry = () =>
        storage().retryIssueRecord(environmentId, record.id, NOON + 6, [
          auditEntry(environmentId, 'issue_record.retry'),
        ])
      const retries = await Promise.all([retry(), retry(), retry()])
      assert.equal(retries.filter((one) => one?.changed).length, 1)
      const again = retries.find((one) => one?.changed)?.record
      assert.deepEqual(again && state(again), { status: 'RECEIVED', statusAt: NOON + 6, failure: null })
      assert.equal(await work(), waiting)
      assert.equal(await storage().retryIssueRecord(newId(), record.id, NOON, []), null)
      assert.equal((await decideAll(storage(), environmentId, [record.id])).opened.length, 1)
      // A decided record cannot fail.
      await storage().failIssueRecord(environmentId, record.id, 'late', NOON + 7)
      assert.equal((await storage().findIssueRecord(environmentId, record.id))?.status, 'DECIDED')
    })

    test('a record of another tenant cannot be failed or decided', async () => {
      const environmentId = newId()
      const record = issueRecord(environmentId)
      await reviewed(storage(), issueRecord(newId()))
      await storage().receiveIssueRecord(record)
      await storage().startReview(environmentId, [record.id], NOON)
      const waiting = await work()
      await storage().failIssueRecord(newId(), record.id, 'x', NOON)
      assert.equal(await work(), waiting)
      assert.deepEqual(await decideAll(storage(), newId(), [record.id]), { opened: [], regressed: [] })
      assert.equal((await storage().findIssueRecord(environmentId, record.id))?.status, 'EVALUATING')
    })
  })
}
