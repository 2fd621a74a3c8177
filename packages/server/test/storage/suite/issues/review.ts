import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { reviewIssueRecords } from '../../../../src/jobs/issues/find-failures.ts'
import { createWorkRunner } from '../../../../src/jobs/engine/work.ts'
import type { NewIssueRecord } from '../../../../src/storage/issues/issues.ts'
import type { Storage } from '../../../../src/storage/storage.ts'
import { issueRecord, issueOf, listAll } from './issue-sample.ts'
import { ownStorage, type OpenStorage } from '../open.ts'
import { newId, NOON } from '../sample.ts'
import { eventually } from '../../../setup/eventually.ts'

const KINDS = 10
const CLIENTS = 20
const NODES = 4

export function reviewSuite(open: OpenStorage) {
  describe('review', () => {
    const storage = ownStorage(open)

    /** Runs the review on several nodes until `work` is done and the queue is empty. */
    async function onNodes(nodes: number, of: (storage: Storage) => Storage, work: () => Promise<unknown>) {
      const errors: unknown[] = []
      const runners = Array.from({ length: nodes }, (_, index) =>
        createWorkRunner({
          storage: storage(),
          handlers: [reviewIssueRecords({ storage: of(storage()), now: Date.now, random: randomBytes })],
          owner: `node ${index}`,
          now: Date.now,
          onError: (error) => errors.push(error),
          pollMs: 5,
          firstDelayMs: 1,
        }),
      )
      for (const runner of runners) runner.start()
      await work()
      await eventually(async () => (await storage().workBacklog(Date.now())).length === 0, 'an empty queue')
      await Promise.all(runners.map((runner) => runner.stop()))
      return errors
    }

    test('a thousand records of ten kinds from twenty clients, in any order, some sent twice, on several nodes make ten issues', async () => {
      const environmentId = newId()
      const records = Array.from({ length: 1_000 }, (_, index): NewIssueRecord => {
        const kind = index % KINDS
        return issueRecord(environmentId, {
          sdkInstanceId: `client ${index % CLIENTS}`,
          clientRecordId: `record ${index}`,
          recordKind: index % 7 === 0 ? 'RECOVERY' : 'DETECTION',
          detectionType: index % 3 === 0 ? `KIND ${kind}` : ` kind  ${kind}`,
          runId: `run ${index % 97}`,
          agentId: `agent ${index % 5}`,
          detectedAt: NOON + ((index * 7919) % 1000),
          payload: JSON.stringify({ tools: index % 2 === 0 ? ['a', 'b'] : ['B', 'A'], attempt: index }),
        })
      })
      const shuffled = [...records, ...records.slice(0, 200)].map((record) => ({
        record,
        place: randomBytes(4).readUInt32BE(),
      }))
      shuffled.sort((a, b) => a.place - b.place)
      const errors = await onNodes(
        NODES,
        (same) => same,
        () => {
          const clients = Array.from({ length: CLIENTS }, async (_, client) => {
            for (const { record } of shuffled.filter((_one, place) => place % CLIENTS === client)) {
              await storage().receiveIssueRecord({ ...record, id: issueRecord('').id })
            }
          })
          return Promise.all(clients)
        },
      )
      assert.deepEqual(errors, [])

      const issues = await listAll(storage(), environmentId)
      const found = issues.map(({ detectionType, occurrences, recoveries, runs, agents, firstSeen, lastSeen }) => ({
        detectionType,
        occurrences,
        recoveries,
        runs,
        agents,
        firstSeen,
        lastSeen,
      }))
      const expected = Array.from({ length: KINDS }, (_, kind) => {
        const of = records.filter((_one, index) => index % KINDS === kind)
        const detections = of.filter(({ recordKind }) => recordKind === 'DETECTION')
        return {
          detectionType: `kind ${kind}`,
          occurrences: detections.length,
          recoveries: of.length - detections.length,
          runs: new Set(detections.map(({ runId }) => runId)).size,
          agents: new Set(detections.map(({ agentId }) => agentId)).size,
          firstSeen: Math.min(...detections.map(({ detectedAt }) => detectedAt)),
          lastSeen: Math.max(...detections.map(({ detectedAt }) => detectedAt)),
        }
      })
      const byType = (a: { detectionType: string }, b: { detectionType: string }) =>
        a.detectionType < b.detectionType ? -1 : 1
      assert.deepEqual(found.toSorted(byType), expected.toSorted(byType))
      for (const { id } of issues) assert.equal((await issueOf(storage(), environmentId, id)).groups.length, 1)
    })

    test('a store that sometimes fails loses nothing and stores nothing twice', async () => {
      const environmentId = newId()
      let calls = 0
      const shaky = (same: Storage): Storage => ({
        ...same,
        // Every third decision is stored but its answer is lost; every fourth is not stored.
        async decideIssueRecords(...args) {
          const call = ++calls
          if (call % 4 === 0) throw new Error('lost before')
          const decided = await same.decideIssueRecords(...args)
          if (call % 3 === 0) throw new Error('lost after')
          return decided
        },
      })
      const errors = await onNodes(3, shaky, async () => {
        for (let index = 0; index < 150; index++) {
          const record = issueRecord(environmentId, { detectionType: `K${index % 3}`, runId: `r${index % 11}` })
          await storage().receiveIssueRecord(record)
        }
      })
      assert.ok(errors.length > 0)
      assert.deepEqual(new Set(errors.map(String)), new Set(['Error: lost before', 'Error: lost after']))
      const issues = await listAll(storage(), environmentId)
      assert.deepEqual(
        issues.map(({ occurrences, runs }) => [occurrences, runs]),
        [
          [50, 11],
          [50, 11],
          [50, 11],
        ],
      )
      assert.deepEqual(
        (await storage().listIssueRecords(environmentId, { status: 'FAILED' }, { limit: 9, after: null })).rows,
        [],
      )
    })

    test('a review that keeps failing ends FAILED with its reason, and can be retried', async () => {
      const environmentId = newId()
      const record = issueRecord(environmentId)
      await storage().receiveIssueRecord(record)
      const broken = (same: Storage): Storage => ({
        ...same,
        startReview: () => Promise.reject(new Error('It cannot be read')),
      })
      await onNodes(1, broken, () => Promise.resolve())
      const failed = await storage().findIssueRecord(environmentId, record.id)
      assert.deepEqual([failed?.status, failed?.failure], ['FAILED', 'It cannot be read'])
      assert.equal((await storage().retryIssueRecord(environmentId, record.id, Date.now(), []))?.changed, true)
      await onNodes(
        1,
        (same) => same,
        () => Promise.resolve(),
      )
      const decided = await storage().findIssueRecord(environmentId, record.id)
      assert.deepEqual([decided?.status, decided?.failure], ['DECIDED', null])
      assert.equal((await listAll(storage(), environmentId)).length, 1)
    })
  })
}
