/** Erasure on request: no reader finds erased data, in any table. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { advanceErasure, type ErasingStore } from '../../../../src/domain/data/erasure.ts'
import type { NewEvent } from '../../../../src/storage/record/events.ts'
import type { NewIssueRecord } from '../../../../src/storage/issues/issues.ts'
import { bucketOf, formerBucketOf, latencyAt } from '../../../../src/storage/runs/usage.ts'
import { ask, request } from '../approvals/approval-sample.ts'
import {
  LATER,
  AGENT,
  newErasure,
  erase,
  deleteAll,
  runIds,
  usage,
  call,
  toolCall,
  blocked,
  tools,
  type Subject,
} from './erasure-sample.ts'
import { issueRecord, listAll, onlyIssue, reviewed, newFailure } from '../issues/issue-sample.ts'
import { changeShared, sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, HOUR, llmCall, newEnvironment, newId, NOON, outcome, runOf, sampleFailure } from '../sample.ts'

export function erasuresSuite(open: OpenStorage) {
  describe('an erasure', () => {
    const storage = sharedStorage(open)

    const subjects: [string, Subject, Partial<NewEvent>][] = [
      ['a run', { kind: 'run', subject: 'gone' }, {}],
      ['a session', { kind: 'session', subject: 'session-1' }, { sessionId: 'session-1' }],
      ['an agent', { kind: 'agent', subject: 'agent-1' }, { agentId: 'agent-1', agentName: 'Gone' }],
      ['an agent by its name', { kind: 'agent', subject: 'Gone' }, { agentName: 'Gone' }],
      ['a client', { kind: 'client', subject: 'client-1' }, { clientId: 'client-1' }],
      ['a user with a session', { kind: 'user', subject: 'user-1' }, { sessionId: 'user-1' }],
      ['a user for whom the agent worked', { kind: 'user', subject: 'user-1' }, { userId: 'user-1' }],
      [
        'a user in a payload field',
        { kind: 'user', subject: 'user-1', field: ['user', 'id'] },
        { payload: '{"user":{"id":"user-1"}}' },
      ],
    ]

    for (const [what, subject, named] of subjects) {
      test(`of ${what} leaves no run, event or usage of it, and everything of others`, async () => {
        const env = newId()
        const mine = [
          event({ runId: 'gone', ...named }),
          call({ runId: 'gone', ...named }),
          outcome('COMPLETED', { runId: 'gone', payload: '{"status":"COMPLETED"}', ...named }),
          toolCall({ runId: 'gone', ...named }),
          blocked({ runId: 'gone', ...named, time: NOON - 1 }),
        ]
        if (named.payload) mine[1] = call({ runId: 'gone' })
        const other = call({ runId: 'kept', agentId: 'other', sessionId: 'other', clientId: 'other' })
        const others = { runId: 'kept', agentId: 'other', sessionId: 'other', clientId: 'other' }
        await append(storage(), env, ...mine, other, toolCall(others))
        const erasure = await erase(storage(), env, subject)
        assert.deepEqual([erasure.runs, erasure.events], [1, 5])
        assert.equal(await storage().findRun(env, 'gone'), null)
        assert.equal(await storage().readTimeline(env, 'gone', { limit: 10, pageBytes: 1_000 }), null)
        assert.deepEqual(await runIds(storage(), env), ['kept'])
        assert.equal(await storage().countToolCalls(env, 'ran', 0, NOON * 2), 1)
        const left = [
          { model: '', events: 1, totalTokens: 0, costNanos: 0 },
          { model: 'model-a', events: 1, totalTokens: 7, costNanos: 500_000_000 },
        ]
        const leftCalls = [['pay', 1, { errors: 1, blocked: 0, approvals: 0 }, 1]]
        assert.deepEqual(await tools(storage(), env), leftCalls)
        assert.deepEqual(await usage(storage(), env), left)
        const refused = [...mine.map(() => 'erased'), 'duplicate']
        assert.deepEqual(await append(storage(), env, ...mine, other), refused)

        const done = await deleteAll(storage(), erasure)
        assert.deepEqual([done.status, done.eventsDeleted, done.subject], ['DONE', 5, null])
        assert.equal(await storage().countToolCalls(env, 'ran', 0, NOON * 2), 1)
        assert.deepEqual(await append(storage(), env, ...mine, other), refused)
        assert.deepEqual(await runIds(storage(), env), ['kept'])
        assert.deepEqual(await usage(storage(), env), left)
      })
    }

    test('of a user compares a number as it was written, beyond 2^53 too', async () => {
      const env = newId()
      const [mine, other] = ['9007199254740993', '9007199254740992']
      const ofUser = (id: string, runId: string) => event({ runId, payload: `{"user":{"id":${id}}}` })
      await append(storage(), env, ofUser(mine, 'gone'), ofUser(other, 'kept'), ofUser('7', 'seven'))
      const erased = async (subject: string) =>
        (await erase(storage(), env, { kind: 'user', subject, field: ['user', 'id'] })).runs
      assert.equal(await erased(mine), 1)
      assert.deepEqual(await runIds(storage(), env), ['kept', 'seven'])
      assert.equal(await erased('7'), 1)
      await append(storage(), env, event({ runId: 'escaped', payload: '{"user":{"id":"caf\\u00e9"}}' }))
      assert.equal(await erased('café'), 1)
      await append(storage(), env, event({ runId: 'twice', payload: '{"user":{"id":"a"},"user":{"id":"b"}}' }))
      assert.equal(await erased('a'), 1, 'the first of two equal keys')
      assert.deepEqual(await runIds(storage(), env), ['kept'])
    })

    test('takes no latency of a call that was not counted', async () => {
      const env = newId()
      const cached = { model: 'model-a', latency: 20, notCounted: 'cache' }
      await append(storage(), env, event({ runId: 'gone', eventType: 'LLM_CALL', payload: JSON.stringify(cached) }))
      await append(storage(), env, call({ runId: 'kept' }))
      await erase(storage(), env, { kind: 'run', subject: 'gone' })
      const window = { by: 'agent', from: NOON - HOUR, to: NOON + HOUR, stepMs: 2 * HOUR } as const
      const tenant = { environmentId: env, workspaceId: newId() }
      const { rows } = await storage().readUsagePoints(tenant, window, { limit: 10, after: null })
      assert.deepEqual(
        rows.map(({ llm }) => llm?.calls),
        [1],
      )
    })

    test('takes calls of before the sketch from the buckets that they are in', async () => {
      const env = newId()
      const versionId = newId()
      const timed = (runId: string, latency: number, time = NOON): NewEvent[] => {
        const sent = JSON.stringify({ model: 'model-a', toolName: 'pay', latency, promptVersionId: versionId })
        const given = { runId, time, latencyMs: latency, payload: sent, promptUse: { versionId, problem: null } }
        const toolUse = { tool: 'pay', problem: null }
        return [llmCall({ model: 'model-a' }, given), event({ eventType: 'TOOL_CALL', ...given, toolUse })]
      }
      // 255.9 and 256 are in different buckets only in the former format.
      for (const [latency, runs] of [
        [100, ['gone', 'old']],
        [255.9, ['gone']],
        [256, ['gone']],
      ] as const) {
        await append(storage(), env, ...runs.flatMap((runId) => timed(runId, latency)))
        for (const table of ['latency_hours', 'tool_hours', 'version_latencies']) {
          const moved = `bucket = ${formerBucketOf(latency)} WHERE bucket = ${bucketOf(latency)}`
          await changeShared(open, `UPDATE ${table} SET ${moved} AND environment_id = ?`, env)
        }
      }
      await append(storage(), env, ...timed('kept', 100, NOON + HOUR), ...timed('new', 100))
      const shown = async () => {
        const tenant = { environmentId: env, workspaceId: newId() }
        const rows = (['agent', 'tool', 'promptVersion'] as const).map(async (by) => {
          const window = { by, from: NOON - HOUR, to: NOON + 2 * HOUR, stepMs: 3 * HOUR } as const
          return (await storage().readUsagePoints(tenant, window, { limit: 10, after: null })).rows
        })
        const rowsOf = (await Promise.all(rows)).flat()
        return rowsOf.flatMap(({ llm, tool }) => [llm, tool]).filter((one) => one !== null)
      }
      await erase(storage(), env, { kind: 'run', subject: 'gone' })
      const at = latencyAt(bucketOf(100))
      for (const latency of await shown()) {
        assert.deepEqual([latency.calls, latency.former], [3, 1])
        assert.ok(Math.abs(latency.p95 / at - 1) < 0.1 && Math.abs(latency.p50 / at - 1) < 0.1, JSON.stringify(latency))
      }
      await erase(storage(), env, { kind: 'run', subject: 'old' })
      const left = await shown()
      assert.equal(left.length, 5)
      for (const latency of left) assert.deepEqual(latency, { calls: 2, p50: at, p95: at, former: 0 })
      await erase(storage(), env, { kind: 'run', subject: 'new' })
      for (const latency of await shown()) assert.deepEqual(latency, { calls: 1, p50: at, p95: at, former: 0 })
    })

    test('of a session takes events of that session in the run of another one', async () => {
      const env = newId()
      await append(storage(), env, event({ sessionId: 'first' }), event({ sessionId: 'second' }))
      const erasure = await erase(storage(), env, { kind: 'session', subject: 'second' })
      assert.equal(erasure.runs, 1)
      assert.deepEqual(await runIds(storage(), env), [])
    })

    test('takes approvals, issue records and what was counted of them', async () => {
      const env = newId()
      await append(storage(), env, event({ runId: 'gone', sessionId: 's' }), event({ runId: 'kept' }))
      const approval = await ask(storage(), env, { runId: 'gone' })
      const ofSession = await ask(storage(), env, { sessionId: 's' })
      const kept = await ask(storage(), env, { runId: 'kept' })
      const tool = (name: string) => ({ payload: `{"toolName":"${name}"}` })
      await reviewed(
        storage(),
        issueRecord(env, { runId: 'gone', agentId: 'a', ...tool('one') }),
        issueRecord(env, { runId: 'kept', agentId: 'a', detectedAt: NOON + 5, ...tool('one') }),
        issueRecord(env, { runId: 'gone', agentId: 'b', ...tool('two') }),
      )
      const waiting = issueRecord(env, { runId: null, sessionId: 's' })
      await storage().receiveIssueRecord(waiting)
      assert.equal((await listAll(storage(), env)).length, 2)
      const erasure = await erase(storage(), env, { kind: 'session', subject: 's' })
      assert.deepEqual([erasure.approvals, erasure.issueRecords, erasure.issues], [2, 3, 1])
      for (const { id } of [approval, ofSession]) assert.equal(await storage().findApproval(env, id), null)
      assert.notEqual(await storage().findApproval(env, kept.id), null)
      const issue = await onlyIssue(storage(), env)
      assert.deepEqual([issue.occurrences, issue.runs, issue.agents], [1, 1, 1])
      assert.equal(issue.firstSeen, NOON + 5)
      const affected = await storage().listAffectedRuns(env, issue.id, { limit: 10, after: null })
      assert.deepEqual(
        affected.rows.map(({ runId }) => runId),
        ['kept'],
      )
      assert.equal(await storage().findIssueRecord(env, waiting.id), null)

      // A late retry of erased data is refused. New data is accepted.
      assert.equal(await storage().receiveIssueRecord({ ...waiting, id: newId() }), null)
      const late = (given: Partial<NewIssueRecord>) =>
        storage().receiveIssueRecord(issueRecord(env, { detectedAt: LATER, ...given }))
      assert.equal(await late({ runId: 'gone' }), null)
      assert.equal(await late({ runId: null, sessionId: 's' }), null)
      assert.equal((await late({ runId: null, sessionId: 's', detectedAt: LATER + 1 }))?.isNew, true)
      assert.equal((await late({ runId: 'kept' }))?.isNew, true)
      const { clientId, clientRequestId } = ofSession
      const again = await storage().createApproval(request(env, { clientId, clientRequestId }))
      assert.equal(again.outcome, 'erased')
      assert.equal((await ask(storage(), env, { sessionId: 's', createdAt: LATER + 1 })).sessionId, 's')
    })

    test('takes what is known of gaps and failures: counts, the error, its issue, and the work that waits', async () => {
      for (const subject of [
        { kind: 'run', subject: 'gone' },
        { kind: 'client', subject: 'erased client' },
      ] as const) {
        const env = await newEnvironment(storage())
        const failure = sampleFailure({ message: 'erased message' })
        const ids = { runId: 'gone', clientId: 'erased client' }
        await append(
          storage(),
          env,
          event({ ...ids, number: 'abcde3', failure, payload: '{"error":"erased message"}' }),
          // An event of a second client in the same run.
          event({ runId: 'gone', clientId: 'other', number: 'other2' }),
          event({ runId: 'kept', clientId: 'other', number: 'other5' }),
        )
        const run = await runOf(storage(), env, 'gone')
        assert.deepEqual([run.failureMessage, run.recorders?.includes('erased client')], ['erased message', true])
        const found = newFailure({ clientId: 'erased client', eventId: 'f' })
        assert.equal(await storage().recordFailures(env, 'gone', [found], NOON), 1)
        await deleteAll(storage(), await erase(storage(), env, subject))
        const { rows } = await storage().listRuns(env, { completeness: 'GAPS' }, { limit: 10, after: null })
        assert.deepEqual(
          rows.map(({ runId }) => runId),
          ['kept'],
        )
        assert.ok(!JSON.stringify(rows).includes('erased'), subject.kind)
        assert.equal(await storage().readFailures(env, run.id, null), null)
        assert.deepEqual(await listAll(storage(), env), [])
        const late = newFailure({ clientId: 'erased client', eventId: 'g' })
        assert.equal(await storage().recordFailures(env, 'gone', [late], NOON), 0, 'a search under way')
      }
    })

    test('holds one entry for events that are counted together, with any number of names', async () => {
      const env = newId()
      const [runs, own] = [24, 1_000]
      for (let run = 0; run < runs; run++) {
        const calls = Array.from({ length: 100 }, (_, index) => {
          const model = `m${run * 100 + index}`
          const sent = { model, latency: 20, usage: { totalTokens: 7 }, cost: 0.5 }
          const counted = { model, totalTokens: 7, costNanos: 500_000_000 }
          return llmCall(counted, { latencyMs: 20, payload: JSON.stringify(sent), runId: 'gone' })
        })
        await append(storage(), env, ...calls, call({ runId: 'gone' }), toolCall({ runId: 'gone' }))
      }
      await append(storage(), env, call({ runId: 'kept' }))
      const entries: number[] = []
      const counting: ErasingStore = {
        ...storage(),
        removeErased(environmentId, id, slice, now) {
          entries.push(...slice.runs.map(({ counted }) => counted?.usage.length ?? 0))
          return storage().removeErased(environmentId, id, slice, now)
        },
      }
      const { id } = await storage().createErasure(newErasure(env, { kind: 'run', subject: 'gone' }), [])
      const of = { environmentId: env, id, now: () => LATER, isOver: () => false }
      const erasure = await advanceErasure(counting, of)
      assert.deepEqual([erasure?.runs, erasure?.events], [1, runs * 102])
      // At most the keys of its own models, of `other` and of the tool.
      assert.ok(entries[0] && entries[0] <= own + 2, entries.join())
      const kept = { model: 'model-a', events: 1, totalTokens: 7, costNanos: 500_000_000 }
      assert.deepEqual(await usage(storage(), env), [kept])
      assert.deepEqual(await tools(storage(), env), [])
    })

    test('stops between two pages of a large run when its time is over', async () => {
      const env = newId()
      const large = `{"text":"${'x'.repeat(200_000)}"}`
      await append(storage(), env, ...Array.from({ length: 30 }, () => event({ sessionId: 's', payload: large })))
      const { id } = await storage().createErasure(newErasure(env, { kind: 'session', subject: 's' }), [])
      let pages = 0
      const counting: ErasingStore = {
        ...storage(),
        listEvents(...args) {
          pages++
          return storage().listEvents(...args)
        },
      }
      const of = { environmentId: env, id, now: () => LATER }
      const stopped = await advanceErasure(counting, { ...of, isOver: () => pages > 0 })
      assert.deepEqual([stopped?.status, pages], ['SEARCHING', 1])
      const done = await advanceErasure(storage(), { ...of, isOver: () => false })
      assert.deepEqual([done?.status, done?.events], ['REMOVING', 30])
    })

    test('deletes a large run in slices and writes one receipt', async () => {
      const env = newId()
      const workspaceId = newId()
      for (let start = 0; start < 250; start += 50) {
        await append(storage(), env, ...Array.from({ length: 50 }, () => event({ runId: 'gone' })))
      }
      const asked = newErasure(env, { kind: 'run', subject: 'gone' })
      const { id } = await storage().createErasure({ ...asked, requestedBy: { ...asked.requestedBy, workspaceId } }, [])
      const erasure = await advanceErasure(storage(), { environmentId: env, id, now: () => LATER, isOver: () => false })
      const first = await storage().deleteErased(env, id, 100, LATER)
      assert.deepEqual([first?.status, first?.eventsDeleted], ['REMOVING', 100])
      const done = await deleteAll(storage(), erasure!, 100)
      assert.equal(done.eventsDeleted, 250)
      await storage().deleteErased(env, id, 100, LATER)
      const { rows } = await storage().listAudit(workspaceId, { limit: 10, after: null })
      assert.equal(rows.length, 1)
      const detail = JSON.parse(rows[0]!.detail) as Record<string, unknown>
      assert.deepEqual([rows[0]!.action, detail['events'], detail['runs']], ['erasure.finish', 250, 1])
      assert.match(String(detail['checksum']), /^[0-9a-f]{64}$/)
    })

    test('ends although its run gets further events whenever it is counted', async () => {
      const env = newId()
      const next = () => call({ runId: 'gone', sessionId: 's', time: LATER + 1 }, 1)
      await append(storage(), env, next())
      const verdicts: string[] = []
      const { id } = await storage().createErasure(newErasure(env, { kind: 'session', subject: 's' }), [])
      const growing: ErasingStore = {
        listErasable: (...given) => storage().listErasable(...given),
        listCountedNames: (...given) => storage().listCountedNames(...given),
        removeErased: (...given) => storage().removeErased(...given),
        concludeErasure: (...given) => storage().concludeErasure(...given),
        async listEvents(...given) {
          const page = await storage().listEvents(...given)
          verdicts.push(...(await append(storage(), env, next())))
          return page
        },
      }
      let slices = 0
      const isOver = () => ++slices > 10
      const erasure = await advanceErasure(growing, { environmentId: env, id, now: () => LATER, isOver })
      assert.deepEqual([erasure?.status, erasure?.events], ['REMOVING', 2])
      assert.deepEqual(verdicts, ['stored', 'erased'])
      assert.deepEqual(await usage(storage(), env), [])
      assert.deepEqual(await append(storage(), env, { ...next(), time: LATER + 2 }), ['stored'])
    })

    for (const [what, change] of [
      ['more', '+ 1'],
      ['fewer', '- 1'],
    ] as const) {
      test(`ends if a run has ${what} events by its own count than in the store`, async () => {
        const env = newId()
        await append(storage(), env, call({ runId: 'gone', sessionId: 's' }), event({ runId: 'gone' }))
        await changeShared(open, `UPDATE runs SET event_count = event_count ${change} WHERE environment_id = ?`, env)
        const { id } = await storage().createErasure(newErasure(env, { kind: 'session', subject: 's' }), [])
        let slices = 0
        const isOver = () => ++slices > 10
        const erasure = await advanceErasure(storage(), { environmentId: env, id, now: () => LATER, isOver })
        assert.deepEqual([erasure?.status, erasure?.runs, erasure?.events], ['REMOVING', 1, 2])
        const done = await deleteAll(storage(), erasure!)
        assert.deepEqual([done.status, done.eventsDeleted], ['DONE', 2])
        assert.deepEqual(await usage(storage(), env), [])
      })
    }

    test('is listed, newest first, and read', async () => {
      const env = newId()
      const ids = [`${AGENT.slice(0, -1)}1`, `${AGENT.slice(0, -1)}2`]
      for (const id of ids) await storage().createErasure(newErasure(env, { kind: 'run', subject: id, id }), [])
      const listed = (await storage().listErasures(env, { limit: 10, after: null })).rows
      assert.deepEqual(
        listed.map(({ id }) => id),
        ids.toReversed(),
      )
      assert.equal(await storage().findErasure(newId(), ids[0]!), null)
    })
  })
}
