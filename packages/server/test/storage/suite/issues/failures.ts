/** Failures that the service detects: their queue rows, counting each once, and their removal with the run. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { randomBytes } from 'node:crypto'
import { failureSubject, readFailureSubject, type NewFailure } from '../../../../src/storage/issues/issues.ts'
import { advanceErasure } from '../../../../src/domain/data/erasure.ts'
import { failureBudgets } from '../../../../src/storage/sql/record/failed-runs.ts'
import { uuidv7 } from '../../../../src/storage/engine/uuid.ts'
import { newRun } from '../../../../src/storage/sql/record/run-state.ts'
import { newErasure } from '../data/erasure-sample.ts'
import { decideAll, issueRecord, listAll, newFailure, onlyIssue } from './issue-sample.ts'
import { decidedHere, ownStorage, type OpenStorage } from '../open.ts'
import { append, batch, event, HOUR, newEnvironment, newId, NOON, outcome, runOf, sampleFailure } from '../sample.ts'

export function failuresSuite(open: OpenStorage) {
  describe('failures', () => {
    const storage = ownStorage(open)

    async function queued(environmentId: string, now = NOON + HOUR): Promise<string[]> {
      const claim = { kind: 'find_failures', owner: newId(), now, leaseUntil: now, limit: 1_000 } as const
      const items = (await storage().claimWork(claim)).filter((item) => item.environmentId === environmentId)
      return items.map(({ subjectId }) => subjectId).toSorted()
    }

    test('a subject names the run and the times of its new events', () => {
      const id = newId()
      for (const span of [null, { from: 5, to: 5 }, { from: 0, to: NOON }, { from: 1, to: 2, ends: true } as const]) {
        assert.deepEqual(readFailureSubject(failureSubject(id, span)), { run: id, span })
      }
      assert.equal(readFailureSubject('x'), null)
      assert.equal(readFailureSubject(`${id}/1-x`), null)
    })

    test('an append queues each run with failures once, two seconds later; no other run and no restored one', async () => {
      const environmentId = await newEnvironment(storage())
      const failed = { failure: sampleFailure() }
      await append(
        storage(),
        environmentId,
        event({ runId: 'fine' }),
        outcome('COMPLETED', { runId: 'fine' }),
        event({ runId: 'two', time: NOON + 5, ...failed }),
        event({ runId: 'two', time: NOON + 2, ...failed }),
        event({ runId: 'two', time: NOON + 9 }),
        outcome('FAILED', { runId: 'ended', time: NOON + 7 }),
      )
      const importing = { id: newId(), differingRetries: 0 }
      await storage().appendEvents(batch(environmentId, [event({ runId: 'old', ...failed })], { importing }))
      const id = async (runId: string) => (await runOf(storage(), environmentId, runId)).id
      const expected = [
        failureSubject(await id('two'), { from: NOON + 2, to: NOON + 5 }),
        failureSubject(await id('ended'), { from: NOON + 7, to: NOON + 7, ends: true }),
      ]
      assert.deepEqual(await queued(environmentId, NOON + 1_999), [])
      assert.deepEqual(await queued(environmentId, NOON + 2_000), expected.toSorted())
    })

    test('the first 100 failures of a run and its end are queued', async () => {
      const environmentId = await newEnvironment(storage())
      const failed = { failure: sampleFailure() }
      const all = Array.from({ length: 150 }, (_, index) => event({ ...failed, time: NOON + index }))
      await append(storage(), environmentId, ...all.slice(0, 75))
      await append(storage(), environmentId, ...all.slice(75))
      await append(storage(), environmentId, outcome('FAILED', { time: NOON + 500 }))
      const spans = (await queued(environmentId)).map((subject) => readFailureSubject(subject)?.span)
      assert.deepEqual(
        spans
          .map((span) => [span?.from, span?.to].map((time) => (time ?? 0) - NOON))
          .toSorted(([a = 0], [b = 0]) => a - b),
        [
          [0, 74],
          [75, 99],
          [500, 500],
        ],
      )
    })

    test('of the outcomes that say FAILED, those are queued that end the run or are among its first errors', async () => {
      const environmentId = await newEnvironment(storage())
      const end = (at: number, given: object = {}) => outcome('FAILED', { time: NOON + at, ...given })
      await append(storage(), environmentId, end(1), end(2), end(3, { failure: sampleFailure() }))
      const errors = Array.from({ length: 100 }, () => event({ failure: sampleFailure(), time: NOON + 4 }))
      await append(storage(), environmentId, ...errors)
      for (const at of [5, 6]) await append(storage(), environmentId, end(at, { failure: sampleFailure() }))
      const spans = (await queued(environmentId)).map((subject) => readFailureSubject(subject)?.span)
      assert.deepEqual(
        spans.toSorted((a, b) => (a?.from ?? 0) - (b?.from ?? 0)),
        [
          { from: NOON + 1, to: NOON + 3, ends: true },
          { from: NOON + 4, to: NOON + 4 },
        ],
      )
    })

    test('an environment where everything fails queues 5,000 failures at once and 50 a second', () => {
      const budgets = failureBudgets()
      const runs = Array.from({ length: 6_000 }, (_, number) => newRun(newId(), number, 'run', newId(), NOON))
      const failed = new Map(runs.map((run) => [run, { from: NOON, to: NOON, failures: 1 }]))
      const counts = [0, 0, 10, 1_000_000].map((later) => budgets.within('one', failed, NOON + later * 1_000).size)
      assert.deepEqual(counts, [5_000, 0, 500, 5_000])
      assert.equal(budgets.within('other', failed, NOON).size, 5_000)
      const each = new Map(runs.map((run) => [run, { from: NOON, to: NOON, failures: 90 }]))
      assert.deepEqual(
        [0, 0, 1, 2].map((later) => budgets.within('third', each, NOON + later * 1_000).size),
        [56, 0, 1, 0],
        'what the last run took more is taken from the seconds after it',
      )
    })

    test('events are read that may tell a failure, with those before them', async () => {
      const environmentId = await newEnvironment(storage())
      const error = '{"error":"Error: x"}'
      await append(
        storage(),
        environmentId,
        event({ eventId: 'early', payload: error, time: NOON - 50 }),
        event({ eventId: 'plain', payload: '{"output":"y"}', time: NOON }),
        event({ eventId: 'failed', payload: error, time: NOON }),
        event({ eventId: 'late', payload: error, time: NOON + 50 }),
      )
      const { id } = await runOf(storage(), environmentId)
      const found = await storage().readFailures(environmentId, id, { from: NOON, to: NOON })
      assert.deepEqual(
        found?.events.map(({ eventId }) => eventId),
        ['early', 'failed'],
      )
      assert.equal(found?.run.runId, 'run')
      assert.equal(await storage().readFailures(environmentId, newId(), null), null)
      assert.equal(await storage().readFailures(newId(), id, null), null)
    })

    test('of the events before a failure, about a megabyte is read', async () => {
      const environmentId = await newEnvironment(storage())
      const large = JSON.stringify({ error: 'x'.repeat(250_000) })
      const all = Array.from({ length: 30 }, (_, at) => event({ eventId: `${at}`, payload: large, time: NOON + at }))
      for (const one of all) await append(storage(), environmentId, one)
      const { id } = await runOf(storage(), environmentId)
      const found = await storage().readFailures(environmentId, id, { from: NOON + 29, to: NOON + 29 })
      assert.deepEqual(
        found?.events.map(({ eventId }) => eventId),
        ['25', '26', '27', '28', '29'],
      )
      const whole = await storage().readFailures(environmentId, id, { from: NOON, to: NOON + 29 })
      assert.ok(whole && whole.events.length < 25, 'more than 4 MiB are read of a long time')
    })

    test('a failure counts once, however often and from how many nodes it is recorded', async () => {
      const environmentId = await newEnvironment(storage())
      const record = () =>
        storage().recordFailures(environmentId, 'run', [newFailure(), newFailure({ eventId: 'f' })], NOON)
      const stored = await Promise.all(Array.from({ length: 8 }, record))
      assert.equal(
        stored.reduce((sum, count) => sum + count, 0),
        2,
      )
      const issue = await onlyIssue(storage(), environmentId)
      assert.deepEqual([issue.occurrences, issue.runs, issue.agents], [2, 1, 1])
    })

    test('a place has issues for 50 messages of a week; further ones are one issue', decidedHere(open), async () => {
      const environmentId = await newEnvironment(storage())
      let count = 0
      async function fail(messages: number, now: number, place = 'one') {
        const failures = Array.from({ length: messages }, () => failureIn(place, `message ${count++}`, now))
        for (let at = 0; at < failures.length; at += 20) {
          await storage().recordFailures(environmentId, 'run', failures.slice(at, at + 20), now)
        }
        return (await listAll(storage(), environmentId)).length
      }
      assert.equal(await fail(70, NOON), 51)
      const all = (await listAll(storage(), environmentId)).find(({ title }) => title === 'all of one')
      assert.equal(all?.occurrences, 20)
      assert.equal(await fail(5, NOON + HOUR, 'other'), 56, 'another place has its own')
      count = 0
      assert.equal(await fail(50, NOON + HOUR), 56, 'messages that are known keep their issues')
      count = 1_000
      assert.equal(await fail(60, NOON + 9 * 24 * HOUR), 56 + 50, 'those of the week before last do not count')
    })

    test(
      'an environment opens 200 issues in an hour; what fails otherwise joins its place, or its kind',
      decidedHere(open),
      async () => {
        const environmentId = await newEnvironment(storage())
        const known = failureIn('known', 'first', NOON)
        await storage().recordFailures(environmentId, 'run', [failureIn('known', 'all', NOON, true), known], NOON)
        const many = Array.from({ length: 230 }, (_, at) => failureIn(`place ${at}`, 'once', NOON))
        for (let at = 0; at < many.length; at += 20) {
          await storage().recordFailures(environmentId, 'run', many.slice(at, at + 20), NOON)
        }
        await storage().recordFailures(environmentId, 'run', [failureIn('known', 'second', NOON)], NOON)
        const issues = await listAll(storage(), environmentId)
        assert.equal(issues.length, 201)
        const count = (wanted: string) => issues.find(({ title }) => title === wanted)?.occurrences
        assert.deepEqual([count('all of its kind'), count('all of known'), count('first')], [32, 2, 1])
        const later = NOON + 2 * HOUR
        await storage().recordFailures(environmentId, 'run', [failureIn('later', 'again', later)], later)
        assert.equal((await listAll(storage(), environmentId)).length, 202)
      },
    )

    test('what a client reported before stays in its own issue, and the service adds nothing', async () => {
      const environmentId = await newEnvironment(storage())
      const record = issueRecord(environmentId, { detectionType: 'MINE', eventId: 'e' })
      const others = [
        issueRecord(environmentId, { detectionType: 'MINE', eventId: 'f', recordKind: 'RECOVERY' }),
        issueRecord(environmentId, { detectionType: 'MINE', eventId: 'f', runId: 'other' }),
      ]
      for (const one of [record, ...others]) await storage().receiveIssueRecord(one)
      const failures = [newFailure(), newFailure({ eventId: 'f' })]
      assert.equal(await storage().recordFailures(environmentId, 'run', failures, NOON), 1)
      await decideAll(storage(), environmentId, [record.id])
      const titles = (await listAll(storage(), environmentId)).map(({ title }) => title)
      assert.deepEqual(titles.toSorted(), ['Error in get_order', 'MINE'])
    })

    test('what a client reports later joins the record of the service; a recovery and another finding do not', async () => {
      const environmentId = await newEnvironment(storage())
      await storage().recordFailures(environmentId, 'run', [newFailure()], NOON)
      const late = issueRecord(environmentId, { detectionType: 'TOOL_FAILED', eventId: 'e' })
      const others = [
        issueRecord(environmentId, { detectionType: 'TOOL_FAILED', eventId: 'e', recordKind: 'RECOVERY' }),
        issueRecord(environmentId, { detectionType: 'LOOP', eventId: 'other' }),
      ]
      for (const one of [late, ...others]) await storage().receiveIssueRecord(one)
      await decideAll(storage(), environmentId, [late.id, ...others.map(({ id }) => id)])
      const issues = await listAll(storage(), environmentId)
      assert.deepEqual(issues.map(({ title, occurrences }) => `${title} ${occurrences}`).toSorted(), [
        'Error in get_order 1',
        'LOOP 1',
      ])
      const kept = await storage().findIssueRecord(environmentId, late.id)
      assert.deepEqual([kept?.status, kept?.fingerprint], ['DECIDED', null])
      assert.equal(kept?.issueId, issues.find(({ title }) => title !== 'LOOP')?.id)
    })

    test('what a client reports at the same time counts once', async () => {
      for (let round = 0; round < 20; round++) {
        const environmentId = await newEnvironment(storage())
        const record = issueRecord(environmentId, { detectionType: 'TOOL_FAILED', eventId: 'e' })
        const reported = async () => {
          await storage().receiveIssueRecord(record)
          await decideAll(storage(), environmentId, [record.id])
        }
        await Promise.all([reported(), storage().recordFailures(environmentId, 'run', [newFailure()], NOON)])
        const issues = await listAll(storage(), environmentId)
        assert.equal(
          issues.reduce((sum, { occurrences }) => sum + occurrences, 0),
          1,
          `round ${round}`,
        )
        const kept = await storage().findIssueRecord(environmentId, record.id)
        assert.equal(kept?.status, 'DECIDED')
        assert.equal(kept.issueId, issues[0]?.id)
      }
    })

    test('an export has them, and an import of it counts them once', async () => {
      const [from, to] = [await newEnvironment(storage()), await newEnvironment(storage())]
      await storage().recordFailures(from, 'run', [newFailure()], NOON)
      for (const table of ['issue', 'issueFingerprint', 'issueRecord', 'issueAffected'] as const) {
        const { rows } = await storage().readExported(from, table, null, 100)
        assert.equal(rows.length > 0, true, table)
        await storage().importRows(to, table, rows, NOON)
      }
      assert.equal(await storage().recordFailures(to, 'run', [newFailure()], NOON), 0)
      const { rows } = await storage().listIssueRecords(to, {}, { limit: 10, after: null })
      assert.deepEqual(
        rows.map(({ origin, eventId }) => `${origin} ${eventId}`),
        ['SERVICE e'],
      )
      assert.equal((await onlyIssue(storage(), to)).occurrences, 1)
    })

    test('an erasure of the run takes the records and the work, and no later look brings them back', async () => {
      const environmentId = await newEnvironment(storage())
      await append(storage(), environmentId, event({ failure: sampleFailure() }))
      const { id } = await runOf(storage(), environmentId)
      await storage().recordFailures(environmentId, 'run', [newFailure()], NOON)
      const { id: erasure } = await storage().createErasure(
        newErasure(environmentId, { kind: 'run', subject: 'run' }),
        [],
      )
      const now = () => NOON + 60_000
      await advanceErasure(storage(), { environmentId, id: erasure, now, isOver: () => false })
      assert.deepEqual(await listAll(storage(), environmentId), [])
      assert.deepEqual(await queued(environmentId), [])
      assert.equal(await storage().readFailures(environmentId, id, null), null)
      assert.equal(await storage().recordFailures(environmentId, 'run', [newFailure({ eventId: 'other' })], NOON), 0)
    })
  })
}

/** A failure with groups for its place and its kind. `isAll`: it belongs to the group of the place. */
function failureIn(place: string, message: string, now: number, isAll = false): NewFailure {
  const family = `v3:${place}:`
  const all = { fingerprint: `${family}all`, facts: '{}', title: `all of ${place}` }
  const own = isAll ? all : { fingerprint: `${family}${message}`, facts: '{}', title: message }
  const { decision, ...failure } = newFailure({ eventId: newId(), time: now })
  const kind = { fingerprint: 'v3:kind:', facts: '{}', title: 'all of its kind' }
  return {
    ...failure,
    decision: { ...decision, ...own, newIssueId: uuidv7(now, randomBytes) },
    broader: { family, place: all, kind },
  }
}
