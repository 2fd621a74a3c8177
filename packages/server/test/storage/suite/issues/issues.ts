import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { IssueRecordRow, NewIssueRecord, IssueFilter, IssueRow } from '../../../../src/storage/issues/issues.ts'
import type { Page } from '../../../../src/storage/engine/page.ts'
import { auditEntry, change, issueOf, issueRecord, listAll, newRecordId, onlyIssue, reviewed } from './issue-sample.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, newId, NOON, runOf } from '../sample.ts'

const audit = (environmentId: string) => [auditEntry(environmentId, 'issue.change')]

export function issuesSuite(open: OpenStorage) {
  describe('an issue', () => {
    const storage = sharedStorage(open)
    const review = (...records: NewIssueRecord[]) => reviewed(storage(), ...records)

    test('is opened by the first detection, and joined by those of the same facts', async () => {
      const environmentId = newId()
      const first = issueRecord(environmentId, { detectedAt: NOON + 5, runId: 'r1', agentId: 'a1', policyId: 'p' })
      const { opened, regressed } = await review(first)
      assert.deepEqual([opened.length, regressed], [1, []])
      const same = { detectionType: ' tool_BLOCKED', policyId: 'P' }
      await review(
        issueRecord(environmentId, { ...same, detectedAt: NOON - 5, runId: 'r2', agentId: 'a1' }),
        issueRecord(environmentId, { ...same, detectedAt: NOON + 500, runId: 'r1', agentId: 'a2' }),
        issueRecord(environmentId, { ...same, detectedAt: NOON, runId: null, agentId: 'a1' }),
      )
      const issue = await onlyIssue(storage(), environmentId)
      const { fingerprint } = (await storage().findIssueRecord(environmentId, first.id)) ?? {}
      assert.deepEqual(issue, {
        id: opened[0],
        title: 'Tool blocked by p',
        detectionType: 'tool_blocked',
        state: 'OPEN',
        stateAt: NOON + 3_000,
        stateBy: null,
        ignoredUntil: null,
        openedAt: NOON + 3_000,
        firstSeen: NOON - 5,
        lastSeen: NOON + 500,
        occurrences: 4,
        recoveries: 0,
        runs: 2,
        agents: 2,
        regressions: 0,
        lastRegressionAt: null,
        assignee: null,
        mergedInto: null,
        groups: [
          {
            fingerprint,
            facts: '{"detectionType":"tool_blocked","policyId":"p"}',
            firstSeen: NOON - 5,
            lastSeen: NOON + 500,
            occurrences: 4,
            recoveries: 0,
            runs: 2,
            agents: 2,
            homeIssueId: opened[0],
          },
        ],
        mergedFrom: [],
        firstPayload: '{}',
        lastPayload: '{}',
      })
    })

    test('with other facts, or in another environment, is another issue', async () => {
      const [one, two] = [newId(), newId()]
      await review(issueRecord(one), issueRecord(one, { detectionType: 'LOOP' }))
      await review(issueRecord(two))
      assert.equal((await listAll(storage(), one)).length, 2)
      const [issue] = await listAll(storage(), two)
      assert.equal(await storage().findIssue(one, issue?.id ?? ''), null)
      assert.equal(issue?.occurrences, 1)
    })

    test('is found by words of its title, facts and agents, whatever their case, and by an id that its message leaves out', async () => {
      const environmentId = newId()
      await append(storage(), environmentId, event({ runId: 'r1', agentId: 'shop', agentName: 'Électro Support' }))
      const payload = (message: string) => JSON.stringify({ toolName: 'get_order', reasonCode: message })
      await review(
        issueRecord(environmentId, { agentId: 'shop', detectionType: 'ONE', payload: payload('No order A-…') }),
        issueRecord(environmentId, { agentId: 'other', detectionType: 'TWO', payload: payload('Status 503') }),
      )
      const matches = async (q: string, state?: 'OPEN' | 'RESOLVED') => {
        const { rows } = await storage().listIssues(environmentId, { q, state }, { limit: 9, after: null })
        return rows.map(({ detectionType }) => detectionType).toSorted()
      }
      assert.deepEqual(await matches('GET_ORDER'), ['one', 'two'])
      assert.deepEqual(await matches('order no'), ['one'])
      assert.deepEqual(await matches('électro'), ['one'])
      assert.deepEqual(await matches('ÉLECTRO get_order', 'OPEN'), ['one'])
      assert.deepEqual(await matches('A-17'), ['one'])
      assert.deepEqual(await matches('503'), ['two'])
      assert.deepEqual(await matches('shop 503'), [])
      // The search does not match the names of an issue's facts, such as `toolName`.
      assert.deepEqual(await matches('toolname'), [])
      assert.deepEqual(await matches('order', 'RESOLVED'), [])
    })

    test('counts the different end users of its runs', async () => {
      const environmentId = newId()
      for (const [runId, userId] of [
        ['r1', 'ana'],
        ['r2', 'ana'],
        ['r3', 'ben'],
        ['r4', null],
      ] as const)
        await append(storage(), environmentId, event({ runId, userId }))
      await review(...['r1', 'r2', 'r3', 'r4', 'unknown'].map((runId) => issueRecord(environmentId, { runId })))
      const { id } = await onlyIssue(storage(), environmentId)
      assert.equal(await storage().countAffectedUsers(environmentId, id), 2)
    })

    test('is never last seen after the service received the record', async () => {
      const environmentId = newId()
      await review(issueRecord(environmentId, { detectedAt: NOON + 1e12, receivedAt: NOON + 7 }))
      const { firstSeen, lastSeen } = await onlyIssue(storage(), environmentId)
      assert.deepEqual([firstSeen, lastSeen], [NOON + 7, NOON + 7])
    })

    test('counts recoveries and is not closed by them, in either order', async () => {
      const environmentId = newId()
      const recovery = () =>
        issueRecord(environmentId, { recordKind: 'RECOVERY', detectedAt: NOON + 900, runId: 'other' })
      assert.deepEqual(await review(recovery(), recovery()), { opened: [], regressed: [] })
      assert.deepEqual(await listAll(storage(), environmentId), [])
      await review(issueRecord(environmentId))
      await review(recovery(), issueRecord(environmentId))
      const issue = await onlyIssue(storage(), environmentId)
      const { state, occurrences, recoveries, runs, lastSeen } = issue
      assert.deepEqual(
        { state, occurrences, recoveries, runs, lastSeen },
        { state: 'OPEN', occurrences: 2, recoveries: 3, runs: 1, lastSeen: NOON },
      )
      const page = { limit: 9, after: null }
      assert.equal((await storage().listIssueOccurrences(environmentId, issue.id, 'RECOVERY', page)).rows.length, 3)
      const found = (await storage().listIssueOccurrences(environmentId, issue.id, 'DETECTION', page)).rows
      assert.deepEqual(
        found.map(({ issueId }) => issueId),
        [issue.id, issue.id],
      )
    })

    test('lists occurrences, runs, agents, latest first and page by page', async () => {
      const environmentId = newId()
      await append(storage(), environmentId, event({ runId: 'r1', agentId: 'a1', agentName: 'Bot' }))
      const records = [3, 1, 4, 1, 5].map((time, index) =>
        issueRecord(environmentId, { detectedAt: NOON + time, runId: `r${index % 3}`, agentId: `a${index % 2}` }),
      )
      await review(...records)
      const { id } = await onlyIssue(storage(), environmentId)

      const ids: string[] = []
      for (let after: { at: number; key: string } | null = null; ;) {
        const { rows }: Page<IssueRecordRow> = await storage().listIssueOccurrences(environmentId, id, 'DETECTION', {
          limit: 2,
          after,
        })
        const last = rows.at(-1)
        if (last === undefined) break
        ids.push(...rows.map((row) => row.id))
        after = { at: last.seenAt, key: last.id }
      }
      const expected = records.toSorted((a, b) => b.detectedAt - a.detectedAt || (a.id < b.id ? 1 : -1))
      assert.deepEqual(
        ids,
        expected.map((record) => record.id),
      )

      const runs = (await storage().listAffectedRuns(environmentId, id, { limit: 9, after: null })).rows
      const recorded = await runOf(storage(), environmentId, 'r1')
      assert.deepEqual(
        runs.map(({ key: _, ...row }) => row),
        [
          {
            runId: 'r1',
            internalRunId: recorded.id,
            status: 'RUNNING',
            occurrences: 2,
            firstSeen: NOON + 1,
            lastSeen: NOON + 5,
          },
          { runId: 'r2', internalRunId: null, status: null, occurrences: 1, firstSeen: NOON + 4, lastSeen: NOON + 4 },
          { runId: 'r0', internalRunId: null, status: null, occurrences: 2, firstSeen: NOON + 1, lastSeen: NOON + 3 },
        ],
      )
      const after = { at: runs[0]?.lastSeen ?? 0, key: runs[0]?.key ?? '' }
      assert.deepEqual(
        (await storage().listAffectedRuns(environmentId, id, { limit: 1, after })).rows,
        runs.slice(1, 2),
      )
      const agents = (await storage().listAffectedAgents(environmentId, id, { limit: 9, after: null })).rows
      assert.deepEqual(
        agents.map(({ key: _, firstSeen: __, lastSeen: ___, ...row }) => row),
        [
          { agentId: 'a0', internalAgentId: null, name: null, occurrences: 3 },
          { agentId: 'a1', internalAgentId: recorded.agentId, name: 'Bot', occurrences: 2 },
        ],
      )
      assert.deepEqual((await storage().listAffectedRuns(newId(), id, { limit: 9, after: null })).rows, [])
    })

    test('counts its detections by slots of time, up to a limit for each set of facts', async () => {
      const environmentId = newId()
      const at = (detectedAt: number) => issueRecord(environmentId, { detectedAt })
      await review(...[0, 9, 10, 25, 29, 30].map((ms) => at(NOON + ms)), at(NOON - 1))
      const { id } = await onlyIssue(storage(), environmentId)
      const read = (most: number, of = environmentId) =>
        storage().readIssueTrend(of, id, { from: NOON, width: 10, count: 3, most })
      assert.deepEqual(await read(6), { counts: [2, 1, 2], isPartial: false })
      assert.deepEqual(await read(5), { counts: [2, 1, 2], isPartial: true })
      assert.deepEqual(await read(3), { counts: [0, 1, 2], isPartial: true })
      assert.equal(await read(6, newId()), null)
    })

    test('changes its state only from a state that allows it; otherwise it returns the current one', async () => {
      const environmentId = newId()
      await review(issueRecord(environmentId))
      const { id } = await onlyIssue(storage(), environmentId)
      const ref = { environmentId, id }
      const to = async (state: IssueRow['state']) => {
        const by = change()
        const result = await storage().changeIssueState(ref, state, by, audit(environmentId))
        if (result?.changed) assert.deepEqual([result.issue.stateAt, result.issue.stateBy], [by.at, by.actor])
        return [result?.changed, result?.issue.state]
      }
      assert.deepEqual(await to('OPEN'), [false, 'OPEN'])
      assert.deepEqual(await to('RESOLVED'), [true, 'RESOLVED'])
      assert.deepEqual(await to('IGNORED'), [false, 'RESOLVED'])
      assert.deepEqual(await to('RESOLVED'), [false, 'RESOLVED'])
      assert.deepEqual(await to('OPEN'), [true, 'OPEN'])
      assert.deepEqual(await to('IGNORED'), [true, 'IGNORED'])
      assert.deepEqual(await to('RESOLVED'), [false, 'IGNORED'])
      assert.deepEqual(await to('OPEN'), [true, 'OPEN'])
      const activity = (await storage().listIssueActivity(environmentId, id, { limit: 9, after: null })).rows
      assert.deepEqual(
        activity.map(({ kind }) => kind),
        ['REOPENED', 'IGNORED', 'REOPENED', 'RESOLVED'],
      )
      assert.equal(await storage().changeIssueState({ environmentId: newId(), id }, 'RESOLVED', change(), []), null)
    })

    test('changed by several people at once takes one change', async () => {
      const environmentId = newId()
      await review(issueRecord(environmentId))
      const ref = { environmentId, id: (await onlyIssue(storage(), environmentId)).id }
      const states = Array.from({ length: 12 }, (_, index) => (index % 2 === 0 ? 'RESOLVED' : 'IGNORED'))
      const results = await Promise.all(
        states.map((state) => storage().changeIssueState(ref, state, change(), audit(environmentId))),
      )
      assert.equal(results.filter((result) => result?.changed).length, 1)
      const winner = states[results.findIndex((result) => result?.changed)]
      assert.equal((await onlyIssue(storage(), environmentId)).state, winner)
      assert.equal(
        (await storage().listIssueActivity(environmentId, ref.id, { limit: 99, after: null })).rows.length,
        1,
      )
    })

    test('that was resolved is reopened by a detection, as a regression that records who had resolved it', async () => {
      const environmentId = newId()
      await review(issueRecord(environmentId))
      const ref = { environmentId, id: (await onlyIssue(storage(), environmentId)).id }
      const resolved = change()
      await storage().changeIssueState(ref, 'RESOLVED', resolved, audit(environmentId))
      await review(issueRecord(environmentId, { recordKind: 'RECOVERY' }))
      assert.equal((await onlyIssue(storage(), environmentId)).state, 'RESOLVED')
      const record = issueRecord(environmentId)
      assert.deepEqual(await review(record, issueRecord(environmentId)), { opened: [], regressed: [ref.id] })
      const issue = await onlyIssue(storage(), environmentId)
      const { state, stateAt, stateBy, regressions, lastRegressionAt, occurrences } = issue
      assert.deepEqual(
        { state, stateAt, stateBy, regressions, lastRegressionAt, occurrences },
        {
          state: 'OPEN',
          stateAt: NOON + 3_000,
          stateBy: null,
          regressions: 1,
          lastRegressionAt: NOON + 3_000,
          occurrences: 3,
        },
      )
      const activity = (await storage().listIssueActivity(environmentId, ref.id, { limit: 9, after: null })).rows
      const regression = activity.find(({ kind }) => kind === 'REGRESSED')
      assert.deepEqual(JSON.parse(regression?.detail ?? ''), {
        recordId: record.id,
        resolvedAt: new Date(resolved.at).toISOString(),
        resolvedBy: resolved.actor,
      })
      assert.equal(regression?.actor, null)
    })

    test('writes changes to the audit log in the same transaction, and refused ones not', async () => {
      const environmentId = newId()
      await review(issueRecord(environmentId), issueRecord(environmentId, { detectionType: 'OTHER' }))
      const [one, two] = await listAll(storage(), environmentId)
      assert.ok(one && two)
      const ref = { environmentId, id: one.id }
      const entry = (action: string) => [auditEntry(environmentId, action)]
      await storage().changeIssueState(ref, 'RESOLVED', change(), entry('resolve'))
      await storage().changeIssueState(ref, 'RESOLVED', change(), entry('resolve again'))
      await storage().assignIssue(ref, 'ann', change(), entry('assign'))
      await storage().commentIssue(ref, 'text', change(), entry('comment'))
      await storage().commentIssue({ environmentId, id: newId() }, 'text', change(), entry('comment on nothing'))
      await storage().mergeIssues(ref, two.id, change(), entry('merge'))
      await storage().mergeIssues(ref, two.id, change(), entry('merge again'))
      const fingerprints = (await issueOf(storage(), environmentId, two.id)).groups.map(
        ({ fingerprint }) => fingerprint,
      )
      const split = { fingerprints: fingerprints.slice(0, 1), newIssueId: newRecordId() }
      await storage().splitIssue({ environmentId, id: two.id }, split, change(), entry('split'))
      await storage().splitIssue({ environmentId, id: two.id }, split, change(), entry('split again'))
      const log = (await storage().listAudit(null, { limit: 1000, after: null })).rows
      const actions = log.filter((row) => row.environmentId === environmentId).map(({ action }) => action)
      assert.deepEqual(actions.toReversed(), ['resolve', 'assign', 'comment', 'merge', 'split'])
    })

    test('that is ignored stays ignored and keeps counting', async () => {
      const environmentId = newId()
      await review(issueRecord(environmentId))
      const ref = { environmentId, id: (await onlyIssue(storage(), environmentId)).id }
      await storage().changeIssueState(ref, 'IGNORED', change(), audit(environmentId))
      assert.deepEqual(await review(issueRecord(environmentId, { runId: 'r9' })), { opened: [], regressed: [] })
      const { state, occurrences, runs, regressions } = await onlyIssue(storage(), environmentId)
      assert.deepEqual(
        { state, occurrences, runs, regressions },
        { state: 'IGNORED', occurrences: 2, runs: 2, regressions: 0 },
      )
    })

    test('that is ignored until a time opens then, once, unless someone changed it before', async () => {
      const environmentId = newId()
      await review(issueRecord(environmentId))
      const ref = { environmentId, id: (await onlyIssue(storage(), environmentId)).id }
      const ignore = (until: number) =>
        storage().changeIssueState(ref, 'IGNORED', change(), audit(environmentId), until)
      const state = async () => {
        const issue = await onlyIssue(storage(), environmentId)
        return [issue.state, issue.ignoredUntil]
      }
      const claim = { kind: 'reopen_issue' as const, owner: 'o', leaseUntil: NOON + 100, limit: 9 }
      const due = async (now: number) =>
        (await storage().claimWork({ ...claim, now })).filter(({ subjectId }) => subjectId === ref.id).length
      await ignore(NOON + 50)
      assert.deepEqual(await state(), ['IGNORED', NOON + 50])
      await storage().changeIssueState(ref, 'OPEN', change(), audit(environmentId))
      assert.deepEqual([await state(), await due(NOON + 90)], [['OPEN', null], 0])
      await ignore(NOON + 20)
      await storage().endIgnoring(ref, newRecordId(), NOON + 19)
      assert.deepEqual(await state(), ['IGNORED', NOON + 20])
      await storage().changeIssueState(ref, 'OPEN', change(), audit(environmentId))
      await ignore(NOON + 20)
      assert.deepEqual([await due(NOON + 19), await due(NOON + 20)], [0, 1])
      for (let n = 0; n < 2; n++) await storage().endIgnoring(ref, newRecordId(), NOON + 20)
      assert.deepEqual(await state(), ['OPEN', null])
      const { rows } = await storage().listIssueActivity(environmentId, ref.id, { limit: 9, after: null })
      assert.equal(rows.filter(({ kind, actor }) => kind === 'REOPENED' && actor === null).length, 1)
      assert.equal(await due(NOON + 200), 0)
    })

    test('is assigned and commented on, and lists its activity page by page', async () => {
      const environmentId = newId()
      await review(issueRecord(environmentId))
      const ref = { environmentId, id: (await onlyIssue(storage(), environmentId)).id }
      const times = [1, 2, 3].map((at) => change(NOON + at))
      const [a, b, c] = times
      assert.ok(a && b && c)
      assert.equal(
        (await storage().assignIssue(ref, 'ann@x.org', a, audit(environmentId)))?.issue.assignee,
        'ann@x.org',
      )
      assert.equal(await storage().commentIssue(ref, 'Looks like\nthe limit', b, audit(environmentId)), true)
      assert.equal((await storage().assignIssue(ref, null, c, audit(environmentId)))?.issue.assignee, null)
      const newest = (await storage().listIssueActivity(environmentId, ref.id, { limit: 2, after: null })).rows
      const last = newest.at(-1)
      const page = { limit: 2, after: { at: last?.at ?? 0, key: last?.id ?? '' } }
      const oldest = (await storage().listIssueActivity(environmentId, ref.id, page)).rows
      assert.deepEqual(
        [...newest, ...oldest].map(({ detail, ...row }) => ({ ...row, detail: JSON.parse(detail) as object })),
        [
          { ...c, kind: 'ASSIGNED', text: null, detail: { assignee: null }, importedAt: null },
          { ...b, kind: 'COMMENTED', text: 'Looks like\nthe limit', detail: {}, importedAt: null },
          { ...a, kind: 'ASSIGNED', text: null, detail: { assignee: 'ann@x.org' }, importedAt: null },
        ],
      )
      const foreign = { environmentId: newId(), id: ref.id }
      assert.equal(await storage().assignIssue(foreign, 'x', change(), []), null)
      assert.equal(await storage().commentIssue(foreign, 'x', change(), []), false)
    })
  })

  describe('the list of issues', () => {
    const storage = sharedStorage(open)

    test('is ordered by last seen, with filters, page by page', async () => {
      const environmentId = newId()
      const kinds = ['A', 'B', 'C', 'D']
      await reviewed(
        storage(),
        ...kinds.map((detectionType, index) =>
          issueRecord(environmentId, {
            detectionType,
            detectedAt: NOON + (index === 3 ? 1 : index),
            agentId: `agent ${index % 2}`,
            runId: `run ${index}`,
          }),
        ),
      )
      const all = await listAll(storage(), environmentId)
      assert.deepEqual(
        all.map(({ lastSeen }) => lastSeen - NOON),
        [2, 1, 1, 0],
      )
      assert.deepEqual(
        all.slice(1, 3).map(({ id }) => id),
        all
          .slice(1, 3)
          .map(({ id }) => id)
          .toSorted()
          .toReversed(),
      )
      const list = async (filter: IssueFilter, limit = 9, after: { lastSeen: number; id: string } | null = null) =>
        (await storage().listIssues(environmentId, filter, { limit, after })).rows.map(
          ({ detectionType }) => detectionType,
        )
      const [first, second, third, fourth] = all
      assert.ok(first && second && third && fourth)
      assert.deepEqual(await list({}, 2, second), [third.detectionType, fourth.detectionType])
      assert.deepEqual(await list({ detectionType: 'b' }), ['b'])
      assert.deepEqual((await list({ agentId: 'agent 0' })).toSorted(), ['a', 'c'])
      assert.deepEqual(await list({ runId: 'run 3' }), ['d'])
      // `from` is inclusive, `to` is exclusive.
      assert.deepEqual(await list({ from: third.lastSeen, to: first.lastSeen }), [
        second.detectionType,
        third.detectionType,
      ])
      assert.equal((await list({ from: first.lastSeen + 1 })).length, 0)
      assert.equal((await list({ to: fourth.lastSeen })).length, 0)
      assert.deepEqual(await list({ agentId: 'agent 1', runId: 'run 2' }), [])
      await storage().changeIssueState({ environmentId, id: first.id }, 'RESOLVED', change(), audit(environmentId))
      await storage().assignIssue({ environmentId, id: second.id }, 'ann', change(), audit(environmentId))
      assert.deepEqual(await list({ state: 'RESOLVED' }), [first.detectionType])
      assert.equal((await list({ state: 'OPEN' })).length, 3)
      assert.deepEqual(await list({ assignee: 'ann' }), [second.detectionType])
      assert.deepEqual(await list({ assigned: 'true' }), [second.detectionType])
      assert.equal((await list({ assigned: 'false' })).length, 3)
      assert.deepEqual((await storage().listIssues(newId(), {}, { limit: 9, after: null })).rows, [])
    })
  })
}
