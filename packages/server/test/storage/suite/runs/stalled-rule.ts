/** Runs that stop sending events: when they are stalled, what closes them, and that an outcome still decides. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ClosedAs } from '@tacho/contract/runs/stalled-rule.ts'
import { failureSubject } from '../../../../src/storage/issues/issues.ts'
import type { RunPlace } from '../../../../src/storage/runs/runs.ts'
import { ask } from '../approvals/approval-sample.ts'
import { auditEntry } from '../issues/issue-sample.ts'
import { ownStorage, type OpenStorage } from '../open.ts'
import {
  append,
  batch,
  event,
  HOUR,
  newId,
  NOON,
  outcome,
  newEnvironment as ownEnvironment,
  runOf,
  timelineOf,
} from '../sample.ts'

const MINUTE = 60_000
const IDLE = 30

export function stalledSuite(open: OpenStorage) {
  describe('the stalled rule', () => {
    const storage = ownStorage(open)

    async function newEnvironment(closeAs: ClosedAs | null) {
      const [workspaceId, id] = [newId(), newId()]
      await storage().createWorkspace({ id: workspaceId, name: workspaceId, createdAt: NOON }, [])
      await storage().createEnvironment({ id, workspaceId, name: 'production', createdAt: NOON }, [])
      await storage().changeStalledRule(id, { idleMinutes: IDLE, closeAs }, NOON, [
        auditEntry(id, 'stalled_rule.change'),
      ])
      return id
    }

    /** Returns the external ids of the closed runs. */
    async function close(env: string, now: number): Promise<string[]> {
      const closed: string[] = []
      for (let after: RunPlace | null = null; ;) {
        const slice = await storage().closeStalledRuns(env, now, after)
        closed.push(...slice.changedRunIds)
        if (slice.after === null) return closed.toSorted()
        after = slice.after
      }
    }

    const statuses = async (env: string) => {
      const { rows } = await storage().readUsage(env, NOON - HOUR, NOON + HOUR, { limit: 9, after: null })
      assert.ok(rows.every(({ events }) => events > 0))
      const points = await storage().listRuns(env, {}, { limit: 100, after: null })
      return points.rows.map(({ runId, status }) => `${runId} ${status}`).toSorted()
    }

    async function stalledIn(env: string, stalledAt: number): Promise<string[]> {
      const scan = { runsLookedAt: 9 }
      const { rows } = await storage().listRuns(env, { stalledAt, scan }, { limit: 9, after: null })
      return rows.map(({ runId }) => runId).toSorted()
    }

    test('closes nothing without a word about it', async () => {
      const env = await newEnvironment(null)
      await append(storage(), env, event({}))
      assert.deepEqual(await storage().readStalledRule(env), { idleMinutes: IDLE, closeAs: null })
      assert.equal(await storage().readStalledRule(newId()), null)
      const closed = await storage().closeStalledRuns(env, NOON + HOUR, null)
      assert.deepEqual(closed, { isOn: false, changedRunIds: [], after: null, nextAt: null })
      assert.equal((await runOf(storage(), env)).status, 'RUNNING')
    })

    test('a run that waits for a person stays open, until another event follows', async () => {
      const env = await newEnvironment('FAILED')
      await append(storage(), env, event({}), event({ eventType: 'WAITING', time: NOON + 1 }))
      assert.deepEqual(await close(env, NOON + 2 * HOUR), [])
      assert.deepEqual((await storage().readActivityRule(env, ['run', 'none'], NOON + HOUR)).waiting, ['run'])
      assert.deepEqual(await stalledIn(env, NOON + 2 * HOUR), [])
      await append(storage(), env, event({ time: NOON + 2 }))
      assert.deepEqual((await storage().readActivityRule(env, ['run'], NOON + HOUR)).waiting, [])
      assert.deepEqual(await stalledIn(env, NOON + 2 * HOUR), ['run'])
      assert.deepEqual(await close(env, NOON + 2 * HOUR), ['run'])
    })

    test('a trace is read with its spans until an outcome ends it, and is queued once', async () => {
      const env = await newEnvironment('FAILED')
      await append(storage(), env, event({ eventId: 'a', spanId: 'a', parentSpanId: 'elsewhere', latencyMs: 3 }))
      const { id } = await runOf(storage(), env)
      for (const runIds of [['run', 'no run'], ['run']]) await storage().queueTraceEnds(env, runIds, NOON + 1)
      const claim = { kind: 'end_trace', owner: newId(), now: NOON + 1, leaseUntil: NOON + HOUR, limit: 1_000 } as const
      const queued = (await storage().claimWork(claim)).filter(({ environmentId }) => environmentId === env)
      assert.deepEqual(
        queued.map(({ subjectId }) => subjectId),
        [id],
      )
      const trace = await storage().readUnendedTrace(env, id)
      assert.deepEqual([trace?.runId, trace?.idleMs], ['run', 15 * MINUTE])
      const [span, ...others] = trace?.spans ?? []
      assert.deepEqual([span?.spanId, span?.parentSpanId, span?.latencyMicros], ['a', 'elsewhere', 3_000])
      assert.equal(others.length, 0)
      assert.deepEqual(await close(env, NOON + 2 * HOUR), ['run'])
      assert.notEqual(await storage().readUnendedTrace(env, id), null, 'the rule is no outcome')
      await append(storage(), env, outcome('COMPLETED', { eventId: 'b' }))
      assert.equal(await storage().readUnendedTrace(env, id), null)
      assert.equal(await storage().readUnendedTrace(newId(), id), null)
    })

    test('queues the run that it closed, so that it becomes an issue', async () => {
      const env = await newEnvironment('FAILED')
      await append(storage(), env, event({ clientId: 'client-7' }))
      const { id } = await runOf(storage(), env)
      const now = NOON + 2 * HOUR
      assert.deepEqual(await close(env, now), ['run'])
      const claim = { kind: 'find_failures', owner: newId(), now, leaseUntil: now, limit: 1_000 } as const
      const queued = (await storage().claimWork(claim)).filter(({ environmentId }) => environmentId === env)
      assert.deepEqual(
        queued.map(({ subjectId }) => subjectId),
        [failureSubject(id, null)],
      )
      const review = await storage().readFailures(env, id, null)
      assert.equal(review?.run.ruleClosedAt, now)
      assert.equal(review.events.at(-1)?.clientId, 'client-7')
      await append(storage(), env, outcome('COMPLETED', { time: NOON + 5 }))
      assert.equal((await storage().readFailures(env, id, null))?.run.ruleClosedAt, null)
    })

    test('closes a run one millisecond after its time, without an event, and says so', async () => {
      const env = await newEnvironment('FAILED')
      const other = await newEnvironment(null)
      for (const each of [env, other]) await append(storage(), each, event({ time: NOON - 5 }), event({ time: NOON }))
      const due = NOON + IDLE * MINUTE
      assert.deepEqual(await close(env, due), [])
      assert.deepEqual(await close(env, due + 1), ['run'])
      const run = await runOf(storage(), env)
      assert.deepEqual([run.status, run.endedAt, run.ruleClosedAt, run.eventCount], ['FAILED', NOON, due + 1, 2])
      assert.equal((await timelineOf(storage(), env)).length, 2)
      assert.deepEqual(await close(env, due + 2), [])
      assert.equal((await runOf(storage(), other)).status, 'RUNNING')
    })

    test('a run that gets an event again is alive again, and can be closed again', async () => {
      const env = await newEnvironment('CANCELLED')
      await append(storage(), env, event({ time: NOON }))
      await close(env, NOON + HOUR)
      await append(storage(), env, event({ time: NOON + HOUR }))
      const alive = await runOf(storage(), env)
      assert.deepEqual([alive.status, alive.endedAt, alive.ruleClosedAt, alive.eventCount], ['RUNNING', null, null, 2])
      assert.deepEqual(await statuses(env), ['run RUNNING'])
      assert.deepEqual(await close(env, NOON + 2 * HOUR), ['run'])
      const closed = await runOf(storage(), env)
      assert.deepEqual([closed.status, closed.endedAt], ['CANCELLED', NOON + HOUR])
    })

    test('by default, a run is closed after an hour without an event', async () => {
      const env = await ownEnvironment(storage())
      await append(storage(), env, event({ time: NOON }))
      assert.deepEqual([await close(env, NOON + HOUR), await close(env, NOON + HOUR + 1)], [[], ['run']])
      assert.equal((await runOf(storage(), env)).status, 'FAILED')
    })

    test('is looked at by default, as seldom as a run can be due', async () => {
      const env = await ownEnvironment(storage())
      const claim = { kind: 'close_stalled', owner: 'a', leaseUntil: NOON + 9 * HOUR, limit: 1_000 } as const
      const isClaimed = async (now: number) =>
        (await storage().claimWork({ ...claim, now })).some(({ environmentId }) => environmentId === env)
      assert.deepEqual([await isClaimed(NOON + HOUR - 1), await isClaimed(NOON + HOUR)], [false, true])
      const nextAt = async (now: number) => (await storage().closeStalledRuns(env, now, null)).nextAt
      assert.equal(await nextAt(NOON), NOON + HOUR)
      await append(storage(), env, event({ time: NOON + 5 }))
      assert.equal(await nextAt(NOON + 7), NOON + 5 + HOUR)
      // This run started long ago, but is active.
      await append(storage(), env, event({ time: NOON + HOUR }))
      assert.equal(await nextAt(NOON + HOUR + 6), null)
    })

    test('in the interface, only an outcome ends a run', async () => {
      const env = await newEnvironment('FAILED')
      const runs = ['silent', 'failed', 'open', 'silent too'].map((runId, n) => event({ runId, time: NOON + n }))
      await append(storage(), env, ...runs)
      await append(storage(), env, outcome('FAILED', { runId: 'failed', time: NOON + 9 }))
      await append(storage(), env, event({ runId: 'open', time: NOON + HOUR }))
      assert.deepEqual(await close(env, NOON + HOUR), ['silent', 'silent too'])
      const listed = async (status: 'RUNNING' | 'FAILED', onlyOutcomesEnd: boolean, limit = 9) => {
        const found: string[] = []
        for (let after: RunPlace | null = null; ;) {
          const page = await storage().listRuns(env, { status, onlyOutcomesEnd }, { limit, after })
          found.push(...page.rows.map(({ runId }) => runId))
          if (!page.more) return found
          after = page.rows.at(-1) ?? null
        }
      }
      for (const limit of [1, 2, 9]) {
        assert.deepEqual(await listed('RUNNING', true, limit), ['silent too', 'open', 'silent'])
        assert.deepEqual(await listed('FAILED', true, limit), ['failed'])
        assert.deepEqual(await listed('FAILED', false, limit), ['silent too', 'failed', 'silent'])
      }
      assert.deepEqual(await listed('RUNNING', false), ['open'])
    })

    test('an outcome that arrives later decides, once', async () => {
      const env = await newEnvironment('CANCELLED')
      await append(storage(), env, event({ time: NOON }))
      await close(env, NOON + HOUR)
      await append(storage(), env, outcome('COMPLETED', { time: NOON + 1 }))
      const completed = await runOf(storage(), env)
      assert.deepEqual([completed.status, completed.endedAt, completed.ruleClosedAt], ['COMPLETED', NOON + 1, null])
      await append(storage(), env, outcome('FAILED', { time: NOON + 2 }))
      assert.equal((await runOf(storage(), env)).status, 'COMPLETED')
    })

    test('counts ended runs by the status that they have', async () => {
      const env = await newEnvironment('FAILED')
      for (const runId of ['decided', 'closed', 'running']) await append(storage(), env, event({ runId, time: NOON }))
      const alive = NOON + 2 * HOUR
      await append(storage(), env, event({ runId: 'running', time: alive }))
      assert.deepEqual(await close(env, alive), ['closed', 'decided'])
      await append(storage(), env, outcome('COMPLETED', { runId: 'decided', time: NOON }))
      assert.deepEqual(await statuses(env), ['closed FAILED', 'decided COMPLETED', 'running RUNNING'])
      const window = { since: 0, from: NOON - HOUR, to: NOON + HOUR, now: alive }
      const rule = { name: 'n', kind: 'error_rate', agentId: null, threshold: 1, windowMinutes: 60 } as const
      assert.deepEqual(await storage().measureAlert(env, rule as never, window), { part: 1, whole: 2 })
    })

    test('a run that waits for an approval is not stalled; one whose events arrived lately neither', async () => {
      const env = await newEnvironment('FAILED')
      await append(storage(), env, event({ runId: 'waits', time: NOON }), event({ runId: 'dead', time: NOON }))
      const later = NOON + HOUR
      await ask(storage(), env, { runId: 'waits', createdAt: NOON, expiresAt: later + MINUTE })
      // An imported run has old times, but its events arrive now.
      await storage().appendEvents(batch(env, [event({ runId: 'import', time: NOON })], { receivedAt: later }))
      const listed = (stalledAt: number) => stalledIn(env, stalledAt)
      assert.deepEqual(await listed(NOON + IDLE * MINUTE), [])
      assert.deepEqual(await listed(later), ['dead', 'import'])
      assert.deepEqual(await listed(later + MINUTE), ['dead', 'import', 'waits'])
      assert.deepEqual((await storage().readActivityRule(env, ['dead', 'waits'], later)).waiting, ['waits'])
      assert.deepEqual(await close(env, later), ['dead'])
      // After the request has expired, the run is no longer waiting.
      assert.deepEqual((await storage().readActivityRule(env, ['dead', 'waits'], later + MINUTE)).waiting, [])
      assert.deepEqual(await close(env, later + MINUTE), ['waits'])
    })

    test('a run whose client stopped waiting is stalled in time, and no sooner closed by the rule', async () => {
      const env = await newEnvironment('FAILED')
      await append(storage(), env, event({ runId: 'killed', time: NOON }))
      const later = NOON + HOUR
      const { id } = await ask(storage(), env, { runId: 'killed', createdAt: NOON, expiresAt: later + HOUR })
      const seen = async (at: number) => {
        await storage().noteApprovalsSeen(env, [{ id, at }])
        return (await storage().readActivityRule(env, ['killed'], later)).waiting
      }
      const listed = async () => {
        const scan = { runsLookedAt: 9 }
        const { rows } = await storage().listRuns(env, { stalledAt: later, scan }, { limit: 9, after: null })
        return rows.map(({ runId }) => runId)
      }
      assert.deepEqual(await seen(later - MINUTE), [])
      assert.deepEqual(await listed(), ['killed'])
      assert.deepEqual(await close(env, later), [])
      assert.deepEqual(await seen(later - 1_000), ['killed'])
      assert.deepEqual(await listed(), [])
    })

    test('examines any number of runs in bounded slices', async () => {
      const env = await newEnvironment('FAILED')
      for (let start = 0; start < 450; start += 50) {
        const events = Array.from({ length: 50 }, (_, n) => event({ runId: `run ${start + n}`, time: NOON }))
        await append(storage(), env, ...events)
      }
      const first = await storage().closeStalledRuns(env, NOON + HOUR, null)
      assert.ok(first.after !== null && first.changedRunIds.length <= 200)
      assert.equal((await close(env, NOON + HOUR)).length + first.changedRunIds.length, 450)
    })

    test('is checked by one node from its change on, until it closes nothing', async () => {
      const env = await newEnvironment('FAILED')
      const claim = { kind: 'close_stalled', now: NOON, leaseUntil: NOON + HOUR, limit: 100 } as const
      const claimed = async (owner: string) =>
        (await storage().claimWork({ ...claim, owner })).some(({ environmentId }) => environmentId === env)
      assert.deepEqual([await claimed('a'), await claimed('b')], [true, false])
      await storage().changeStalledRule(env, { idleMinutes: 5, closeAs: 'CANCELLED' }, NOON, [])
      assert.equal(await claimed('b'), true)
    })
  })
}
