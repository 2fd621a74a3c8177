import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type {
  IssueRecordRow,
  NewIssueRecord,
  AffectedRunRow,
  IssueWhole,
} from '../../../../src/storage/issues/issues.ts'
import type { Page } from '../../../../src/storage/engine/page.ts'
import { auditEntry, change, issueOf, issueRecord, listAll, newRecordId, reviewed } from './issue-sample.ts'
import { decidedHere, sharedStorage, type OpenStorage } from '../open.ts'
import { newId, NOON } from '../sample.ts'

const numbers = ({ occurrences, recoveries, runs, agents, firstSeen, lastSeen }: IssueWhole) => ({
  occurrences,
  recoveries,
  runs,
  agents,
  firstSeen: firstSeen - NOON,
  lastSeen: lastSeen - NOON,
})

export function issueGroupingSuite(open: OpenStorage) {
  describe('merging and splitting', () => {
    const storage = sharedStorage(open)

    /** An environment with one issue for each type, and functions to act on them. */
    async function world(...types: string[]) {
      const environmentId = newId()
      const record = (detectionType: string, given: Partial<NewIssueRecord> = {}) =>
        issueRecord(environmentId, { detectionType, ...given })
      const ids = new Map<string, string>()
      for (const type of types) ids.set(type, (await reviewed(storage(), record(type))).opened[0] ?? '')
      const id = (type: string) => ids.get(type) ?? type
      const audit = () => [auditEntry(environmentId, 'issue.merge')]
      return {
        environmentId,
        id,
        record,
        add: (...records: NewIssueRecord[]) => reviewed(storage(), ...records),
        issue: (type: string) => issueOf(storage(), environmentId, id(type)),
        merge: (from: string, into: string) =>
          storage().mergeIssues({ environmentId, id: id(from) }, id(into), change(), audit()),
        split: (from: string, fingerprints: string[], newIssueId = newRecordId()) =>
          storage().splitIssue({ environmentId, id: id(from) }, { fingerprints, newIssueId }, change(), audit()),
        fingerprint: async (type: string) => {
          const rows = (await storage().listIssueRecords(environmentId, {}, { limit: 1000, after: null })).rows
          return rows.find(({ detectionType }) => detectionType === type)?.fingerprint ?? ''
        },
        kinds: async (type: string) =>
          (await storage().listIssueActivity(environmentId, id(type), { limit: 99, after: null })).rows.map(
            ({ kind }) => kind,
          ),
      }
    }

    test('a merge moves the records, later ones too, and counts shared runs and agents once', async () => {
      const { environmentId, id, record, add, issue, merge, kinds } = await world('A', 'B')
      await add(
        record('A', { runId: 'only a', agentId: 'agent 2', detectedAt: NOON - 7 }),
        record('B', { runId: 'only b', detectedAt: NOON + 8 }),
        record('A', { recordKind: 'RECOVERY' }),
      )
      const result = await merge('A', 'B')
      assert.equal(result.outcome, 'merged')
      assert.deepEqual(numbers(await issue('B')), {
        occurrences: 4,
        recoveries: 1,
        runs: 3,
        agents: 2,
        firstSeen: -7,
        lastSeen: 8,
      })
      assert.deepEqual(
        (await listAll(storage(), environmentId)).map((row) => row.id),
        [id('B')],
      )
      assert.deepEqual([(await issue('A')).mergedInto, (await issue('A')).groups], [id('B'), []])
      assert.deepEqual((await issue('B')).mergedFrom, [id('A')])
      assert.deepEqual(
        (await issue('B')).groups.map(({ homeIssueId }) => homeIssueId).toSorted(),
        [id('A'), id('B')].toSorted(),
      )

      // The run already counts by the other fingerprint. The agent is new to both.
      await add(
        record('A', { runId: 'only b', agentId: 'agent 3' }),
        record('B', { runId: 'only b', agentId: 'agent 3' }),
      )
      assert.deepEqual(numbers(await issue('B')), {
        occurrences: 6,
        recoveries: 1,
        runs: 3,
        agents: 3,
        firstSeen: -7,
        lastSeen: 8,
      })
      assert.deepEqual([await kinds('A'), await kinds('B')], [['MERGED_INTO'], ['MERGED']])
      const list = { state: undefined, detectionType: 'a' }
      assert.equal((await storage().listIssues(environmentId, list, { limit: 9, after: null })).rows[0]?.id, id('B'))
    })

    test('a merged issue has one list: in order, page by page, each run once with all its occurrences', async () => {
      const { environmentId, id, record, add, merge } = await world('A', 'B', 'C')
      const records = Array.from({ length: 12 }, (_, index) =>
        record('ABC'[index % 3] ?? '', {
          detectedAt: NOON + 100 + ((index * 7) % 12),
          runId: `r${index % 5}`,
          receivedAt: NOON + 1e6,
        }),
      )
      await add(...records)
      for (const type of ['A', 'C']) await merge(type, 'B')
      const issueId = id('B')
      const seen: number[] = []
      for (let after: { at: number; key: string } | null = null; ;) {
        const { rows }: Page<IssueRecordRow> = await storage().listIssueOccurrences(
          environmentId,
          issueId,
          'DETECTION',
          { limit: 4, after },
        )
        const last = rows.at(-1)
        if (last === undefined) break
        seen.push(...rows.map(({ seenAt }) => seenAt - NOON))
        after = { at: last.seenAt, key: last.id }
      }
      assert.deepEqual(seen, [...Array.from({ length: 12 }, (_, index) => 111 - index), 0, 0, 0])

      const runs: [string, number][] = []
      for (let after: { at: number; key: string } | null = null; ;) {
        const { rows }: Page<AffectedRunRow> = await storage().listAffectedRuns(environmentId, issueId, {
          limit: 2,
          after,
        })
        const last = rows.at(-1)
        if (last === undefined) break
        runs.push(...rows.map(({ runId, occurrences }): [string, number] => [runId, occurrences]))
        after = { at: last.lastSeen, key: last.key }
      }
      const times = new Map<string, number[]>()
      for (const { runId, detectedAt } of records)
        times.set(runId ?? '', [...(times.get(runId ?? '') ?? []), detectedAt])
      const expected = [...times].toSorted(([, a], [, b]) => Math.max(...b) - Math.max(...a))
      assert.deepEqual(runs, [...expected.map(([run, all]): [string, number] => [run, all.length]), ['run', 3]])
    })

    test('merging with itself, in cycles, of merged or foreign issues is refused; merging into a merged one uses its target', async () => {
      const { id, issue, merge } = await world('A', 'B', 'C', 'D')
      assert.equal((await merge('A', 'A')).outcome, 'same_issue')
      assert.equal((await merge('A', 'B')).outcome, 'merged')
      assert.equal((await merge('B', 'A')).outcome, 'same_issue')
      assert.deepEqual(await merge('A', 'C'), { outcome: 'merged_already', into: id('B') })
      const result = await merge('C', 'A')
      assert.equal(result.outcome === 'merged' && result.issue.id, id('B'))
      // Earlier merges move along, so that no issue is merged into a merged one.
      assert.equal((await merge('B', 'D')).outcome, 'merged')
      for (const type of ['A', 'B', 'C']) assert.equal((await issue(type)).mergedInto, id('D'))
      assert.equal((await issue('D')).occurrences, 4)
      assert.equal((await merge('D', newId())).outcome, 'no_target')
      assert.equal((await merge(newId(), 'D')).outcome, 'no_issue')
      const foreign = await world('X')
      assert.equal((await merge('D', foreign.id('X'))).outcome, 'no_target')
      assert.equal((await foreign.merge(id('D'), 'X')).outcome, 'no_issue')
    })

    test('a merged issue cannot be changed', async () => {
      const { environmentId, id, merge, issue } = await world('A', 'B')
      await merge('A', 'B')
      const ref = { environmentId, id: id('A') }
      const audit = () => [auditEntry(environmentId, 'issue.resolve')]
      assert.equal((await storage().changeIssueState(ref, 'RESOLVED', change(), audit()))?.changed, false)
      assert.equal((await storage().assignIssue(ref, 'ann', change(), audit()))?.changed, false)
      assert.deepEqual([(await issue('A')).state, (await issue('A')).assignee], ['OPEN', null])
    })

    test('a detection follows the merge into a resolved issue and reopens that one', async () => {
      const { environmentId, id, record, add, merge } = await world('A', 'B')
      await merge('A', 'B')
      const ref = { environmentId, id: id('B') }
      await storage().changeIssueState(ref, 'RESOLVED', change(), [auditEntry(environmentId, 'issue.resolve')])
      assert.deepEqual(await add(record('A')), { opened: [], regressed: [id('B')] })
    })

    test('a merged issue can be split off again, with its old state and its newer records', async () => {
      const { environmentId, id, record, add, issue, merge, split, fingerprint, kinds } = await world('A', 'B')
      await storage().assignIssue({ environmentId, id: id('A') }, 'ann', change(), [])
      await merge('A', 'B')
      await add(record('A', { runId: 'new', detectedAt: NOON + 9 }))
      const result = await split('B', [await fingerprint('A')])
      assert.equal(result.outcome === 'split' && result.issue.id, id('A'))
      const back = await issue('A')
      assert.deepEqual([back.mergedInto, back.assignee, back.title], [null, 'ann', 'A'])
      assert.deepEqual(numbers(back), { occurrences: 2, recoveries: 0, runs: 2, agents: 1, firstSeen: 0, lastSeen: 9 })
      assert.deepEqual(numbers(await issue('B')), {
        occurrences: 1,
        recoveries: 0,
        runs: 1,
        agents: 1,
        firstSeen: 0,
        lastSeen: 0,
      })
      assert.deepEqual((await issue('B')).mergedFrom, [])
      await add(record('A'))
      assert.equal((await issue('A')).occurrences, 3)
      assert.deepEqual(
        [await kinds('A'), await kinds('B')].map((list) => list.toSorted()),
        [
          ['ASSIGNED', 'MERGED_INTO', 'SPLIT_FROM'],
          ['MERGED', 'SPLIT'],
        ],
      )
    })

    test("an issue's own facts, or those of several merged issues, can be split off into a new issue", async () => {
      const { issue, merge, split, fingerprint, add, record, id } = await world('A', 'B', 'C')
      await merge('A', 'C')
      await merge('B', 'C')
      const [a, b, c] = [await fingerprint('A'), await fingerprint('B'), await fingerprint('C')]
      const own = newRecordId()
      const first = await split('C', [c], own)
      assert.ok(first.outcome === 'split')
      assert.deepEqual([first.issue.id, first.issue.title, first.issue.state], [own, 'C', 'OPEN'])
      assert.deepEqual([(await issue('C')).title, (await issue('C')).occurrences], ['A', 2])
      assert.deepEqual((await add(record('C'), record('C'))).opened, [])
      assert.equal((await issue(own)).occurrences, 3)
      // A split must leave the issue some of its fingerprints, and must not name unknown ones.
      assert.equal((await split('C', [a, b])).outcome, 'nothing_left')
      assert.equal((await split('C', [c])).outcome, 'no_such_group')
      assert.equal((await split('C', [a, c])).outcome, 'no_such_group')
      assert.deepEqual(await split('A', [a]), { outcome: 'merged_already', into: id('C') })
      assert.equal((await split(newId(), [a])).outcome, 'no_issue')
      // A split of fingerprints from two issues opens a third issue.
      await merge(own, 'C')
      const several = newRecordId()
      const both = await split('C', [a, b], several)
      assert.equal(both.outcome === 'split' && both.issue.id, several)
      assert.deepEqual([(await issue(several)).occurrences, (await issue('C')).occurrences], [2, 3])
    })

    test(`an issue holds at most ${LIMITS.issueFingerprints} sets of facts`, decidedHere(open), async () => {
      const types = Array.from({ length: LIMITS.issueFingerprints }, (_, index) => `T${index}`)
      const { merge, issue } = await world('LAST', ...types)
      for (const type of types.slice(1)) assert.equal((await merge(type, 'T0')).outcome, 'merged')
      assert.equal((await issue('T0')).groups.length, LIMITS.issueFingerprints)
      assert.equal((await merge('LAST', 'T0')).outcome, 'too_many_groups')
      assert.equal((await issue('LAST')).mergedInto, null)
    })

    test('a run or agent that is new to a merged issue counts once, also when all its facts add it at once', async () => {
      const types = ['A', 'B', 'C', 'D', 'E', 'F']
      const { record, add, merge, issue } = await world(...types)
      for (const type of types.slice(1)) await merge(type, 'A')
      for (let round = 0; round < 5; round++) {
        const given = { runId: `new ${round}`, agentId: `new ${round}` }
        await Promise.all(types.map((type) => add(record(type, given))))
      }
      const { occurrences, runs, agents } = await issue('A')
      assert.deepEqual([occurrences, runs, agents], [36, 6, 6])
    })

    test('merges that race end in one issue with everything in it', async () => {
      const types = ['A', 'B', 'C', 'D', 'E']
      const { environmentId, merge, add, record } = await world(...types)
      const tried = types.flatMap((from) => types.filter((into) => into !== from).map((into) => ({ from, into })))
      const races = tried.map(({ from, into }) => merge(from, into))
      const records = types.flatMap((type) => [record(type, { runId: type }), record(type)])
      await Promise.all([...races, ...records.map((one) => add(one))])
      const [issue, ...others] = await listAll(storage(), environmentId)
      assert.deepEqual(others, [])
      assert.ok(issue)
      const whole = await issueOf(storage(), environmentId, issue.id)
      const { occurrences, runs } = whole
      assert.deepEqual([occurrences, runs, whole.mergedFrom.length], [15, 6, 4])
    })
  })
}
