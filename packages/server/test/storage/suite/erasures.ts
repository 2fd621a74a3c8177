/** Erasure on request: what is erased is found by no reader, whatever it hangs on, and never comes back. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { advanceErasure, type ErasingStore } from '../../../src/domain/erasure.ts'
import type { ErasureRow, NewErasure } from '../../../src/storage/erasures.ts'
import type { NewEvent } from '../../../src/storage/events.ts'
import type { NewIssueRecord } from '../../../src/storage/issue-records.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { ask, request } from './approval-sample.ts'
import { issueRecord, listAll, onlyIssue, reviewed, newFailure } from './issue-sample.ts'
import { eventEnvironment } from '../../../src/storage/sql/events.ts'
import { changeShared, sharedStorage, type OpenStorage } from './open.ts'
import {
  append,
  batch,
  event,
  HOUR,
  llmCall,
  newEnvironment,
  newId,
  NOON,
  outcome,
  runOf,
  sampleFailure,
} from './sample.ts'
import { newWebhook } from './webhooks.ts'

const LATER = NOON + 60_000
const AGENT = '00000000-0000-0000-0000-000000000000'

export type Subject = Partial<NewErasure> & Pick<NewErasure, 'kind' | 'subject'>

export function newErasure(environmentId: string, given: Subject): NewErasure {
  return {
    id: newId(),
    environmentId,
    field: null,
    subjectHash: 'hash',
    reason: null,
    requestedBy: { kind: 'token', id: 'token-1', name: 'script', workspaceId: newId(), requestId: 'request' },
    createdAt: LATER,
    toSearch: 0,
    ...given,
  }
}

async function erase(storage: Storage, environmentId: string, given: Subject): Promise<ErasureRow> {
  const { id } = await storage.createErasure(newErasure(environmentId, given), [])
  const erasure = await advanceErasure(storage, { environmentId, id, now: () => LATER, isOver: () => false })
  assert.equal(erasure?.status, 'REMOVING')
  return erasure
}

async function deleteAll(storage: Storage, { environmentId, id }: ErasureRow, limit = 1_000): Promise<ErasureRow> {
  for (let round = 0; round < 1_000; round++) {
    const erasure = await storage.deleteErased(environmentId, id, limit, LATER)
    if (erasure?.status !== 'REMOVING') return erasure!
  }
  throw new Error('The deletion does not end')
}

async function runIds(storage: Storage, environmentId: string): Promise<string[]> {
  const { rows } = await storage.listRuns(environmentId, {}, { limit: 100, after: null })
  return rows.map(({ runId }) => runId).toSorted()
}

async function usage(storage: Storage, environmentId: string) {
  const { rows } = await storage.readUsage(environmentId, NOON - HOUR, NOON + HOUR, { limit: 100, after: null })
  return rows.map(({ model, events, totalTokens, costNanos }) => ({ model, events, totalTokens, costNanos }))
}

const call = (given: Partial<NewEvent>, tokens = 7) => {
  const sent = { model: 'model-a', latency: 20, usage: { totalTokens: tokens }, cost: 0.5 }
  const counted = { model: 'model-a', totalTokens: tokens, costNanos: 500_000_000 }
  return llmCall(counted, { latencyMs: 20, payload: JSON.stringify(sent), ...given })
}

const toolCall = (given: Partial<NewEvent>) => {
  const sent = { toolName: 'pay', latency: 20, error: 'refused', ...JSON.parse(given.payload ?? '{}') }
  const toolUse = { tool: 'pay', problem: 'error' as const }
  return event({ eventType: 'TOOL_CALL', toolUse, latencyMs: 20, ...given, payload: JSON.stringify(sent) })
}

const blocked = (given: Partial<NewEvent>) => {
  const payload = '{"toolName":"pay","action":"BLOCK"}'
  return event({ eventType: 'POLICY_DECISION', toolUse: { tool: 'pay', problem: 'blocked' }, ...given, payload })
}

async function tools(storage: Storage, environmentId: string) {
  const window = { by: 'tool', from: NOON - HOUR, to: NOON + 2 * HOUR, stepMs: 3 * HOUR } as const
  const tenant = { environmentId, workspaceId: newId() }
  const { rows } = await storage.readUsagePoints(tenant, window, { limit: 100, after: null })
  return rows.map(({ name, events, calls, tool }) => [name, events, calls, tool?.calls])
}

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
        assert.equal(await storage().countToolCalls(env, 0, NOON * 2), 1)
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
        assert.equal(await storage().countToolCalls(env, 0, NOON * 2), 1)
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

    test('of an agent lets it work on, under the same run id too', async () => {
      const env = newId()
      const before = event({ runId: 'running', agentId: 'agent-1', clientId: 'client-1' })
      await append(storage(), env, before)
      const erasure = await erase(storage(), env, { kind: 'agent', subject: 'agent-1' })
      const next = event({ runId: 'running', agentId: 'agent-1', clientId: 'client-1', time: LATER + 1 })
      assert.deepEqual(await append(storage(), env, before, next), ['erased', 'stored'])
      await deleteAll(storage(), erasure)
      const run = await storage().findRun(env, 'running')
      assert.deepEqual([run?.eventCount, run?.agentName], [1, 'Support bot'])
      const { rows } = await storage().listEvents(env, run!.id, { limit: 10, pageBytes: 1_000, after: null })
      assert.deepEqual(
        rows.map(({ eventId, agentId, clientId }) => [eventId, agentId, clientId]),
        [[next.eventId, 'agent-1', 'client-1']],
      )
    })

    test('of a client keeps out what was seen of it before, not what comes later', async () => {
      const env = newId()
      await append(storage(), env, event({ clientId: 'gone' }))
      const erasure = await erase(storage(), env, { kind: 'client', subject: 'gone' })
      const { effectiveAt } = (await storage().findErasure(env, erasure.id))!
      const seen = (clientId: string, seenAt: number) =>
        storage().writeConfigurationClients(
          env,
          [{ identifiedBy: 'client', clientId, keyId: 'k', revision: '', seenAt }],
          0,
        )
      const names = async () =>
        (await storage().listConfigurationClients(env, undefined, { limit: 10, after: null })).rows.map(
          ({ clientId }) => clientId,
        )
      await seen('gone', effectiveAt!)
      await seen('other', effectiveAt!)
      assert.deepEqual(await names(), ['other'])
      await seen('gone', effectiveAt! + 1)
      assert.deepEqual(await names(), ['gone', 'other'])
    })

    test('takes what was stored up to ten seconds after it by any clock, and refuses as much', async () => {
      for (const [answerMs, until] of [
        [5_000, LATER + 5_000],
        [15_000, LATER + 10_000],
      ] as const) {
        const env = newId()
        const ofSession = (runId: string, time: number) => event({ runId, sessionId: 's', time })
        const store = (receivedAt: number, one: NewEvent) => storage().appendEvents(batch(env, [one], { receivedAt }))
        // Its client is four minutes ahead.
        const ahead = ofSession('ahead', LATER + 240_000)
        await store(LATER - 1, ahead)
        const { id } = await storage().createErasure(newErasure(env, { kind: 'session', subject: 's' }), [])
        assert.deepEqual(await store(LATER, ofSession('known', LATER)), ['erased'])
        assert.deepEqual(await store(LATER + 10_000, ofSession('taken', LATER + 1)), ['stored'])
        assert.deepEqual(await store(LATER + 10_001, ofSession('late', LATER + 10_001)), ['stored'])
        const now = () => LATER + answerMs
        const erasure = await advanceErasure(storage(), { environmentId: env, id, now, isOver: () => false })
        assert.deepEqual([erasure?.effectiveAt, erasure?.runs], [LATER + answerMs, 2])
        assert.deepEqual(await runIds(storage(), env), ['late'])
        // Sent after the answer, with a time before it, or with one that is ahead of it.
        const after = [
          ofSession('new', until),
          ofSession('new', until + 1),
          ofSession('late', until),
          ofSession('late', until + 1),
          ahead,
          { ...ahead, eventId: newId() },
          ofSession('ahead', ahead.time + 1),
        ]
        assert.deepEqual(await append(storage(), env, ...after), [
          'erased',
          'stored',
          'erased',
          'stored',
          'erased',
          'erased',
          'stored',
        ])
        assert.deepEqual(await runIds(storage(), env), ['ahead', 'late', 'new'])
      }
    })

    test('of a run refuses every later event of it', async () => {
      const env = newId()
      await append(storage(), env, event({ runId: 'gone' }))
      await erase(storage(), env, { kind: 'run', subject: 'gone' })
      assert.deepEqual(await append(storage(), env, event({ runId: 'gone', time: LATER + HOUR })), ['erased'])
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

      // A late retry brings nothing back. What is new stays possible.
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

    test('takes what was said of approvals and views that are gone or changed', async () => {
      const env = await newEnvironment(storage())
      await append(storage(), env, event({ runId: 'gone', sessionId: 's', agentId: 'bot' }))
      const targets = { decision: newId(), other: newId(), view: newId(), score: newId() }
      const audited = (targetKind: string, targetId: string, detail: object) => {
        const place = { id: newId(), workspaceId: newId(), environmentId: env, at: NOON, requestId: 'request' }
        const actor = {
          actorKind: 'operator' as const,
          actorId: newId(),
          actorName: 'Ada',
          action: `${targetKind}.change`,
        }
        return { ...place, ...actor, targetKind, targetId, detail: JSON.stringify(detail) }
      }
      // Retention removed the approvals and a run that was scored, and the view no longer filters by the session.
      const decision = audited('approval', targets.decision, { runId: 'gone', agentId: 'bot' })
      const other = audited('approval', targets.other, { runId: 'kept', agentId: 'bot' })
      const view = audited('run_view', targets.view, { query: { sessionId: 's' } })
      const score = audited('run', targets.score, { runId: 's', name: 'helpful', value: 1 })
      await storage().appendAudit([decision, other, view, score])
      const { id: webhookId } = await newWebhook(storage(), env)
      for (const runId of ['gone', 'kept']) {
        const delivery = {
          id: newId(),
          webhookId,
          environmentId: env,
          type: 'approval.decided' as const,
          createdAt: NOON,
        }
        const data = JSON.stringify({ approvalId: newId(), runId, agentId: 'other' })
        await storage().sendToWebhook({ ...delivery, data }, [])
      }
      const details = async () => {
        const { rows } = await storage().listAudit(null, { limit: 1_000, after: null })
        const sought = Object.values(targets)
        const own = rows.filter(({ targetId }) => sought.includes(targetId))
        return Object.fromEntries(own.map(({ targetId, detail }) => [targetId, detail]))
      }
      const deliveries = async () =>
        (await storage().listDeliveries(env, webhookId, {}, { limit: 10, after: null })).rows
      assert.equal((await deliveries()).length, 2)
      await erase(storage(), env, { kind: 'session', subject: 's' })
      const erased = '{"erased":true}'
      const { decision: ofGone, other: ofKept, view: ofView, score: ofScore } = targets
      const left = { [ofGone]: erased, [ofKept]: other.detail, [ofView]: erased, [ofScore]: erased }
      assert.deepEqual(await details(), left)
      assert.equal((await deliveries()).length, 1)
      await erase(storage(), env, { kind: 'agent', subject: 'bot' })
      assert.equal((await details())[ofKept], erased)
      await storage().removeWebhook(env, webhookId, [])
    })

    test('takes saved views that filter by what is erased, also by a score that names it', async () => {
      const env = await newEnvironment(storage())
      await append(storage(), env, event({ runId: 'gone', sessionId: 's' }))
      const queries = [{ sessionId: 's' }, { score: 's' }, { score: 'reviewer=s' }, { score: 'reviewer=other' }]
      for (const query of queries) {
        const view = { id: newId(), environmentId: env, name: newId(), query, lastHours: null, columns: [] }
        await storage().createRunView({ ...view, createdAt: NOON }, [])
      }
      await erase(storage(), env, { kind: 'session', subject: 's' })
      const { rows } = await storage().listRunViews(env, { limit: 10, after: null })
      assert.deepEqual(
        rows.map(({ query }) => query),
        [{ score: 'reviewer=other' }],
      )
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
          // Another client takes part.
          event({ runId: 'gone', clientId: 'other', number: 'other2' }),
          event({ runId: 'kept', clientId: 'other', number: 'other5' }),
        )
        const run = await runOf(storage(), env, 'gone')
        assert.deepEqual([run.failureMessage, run.recorders?.includes('erased client')], ['erased message', true])
        const found = newFailure({ clientId: 'erased client', eventId: 'f' })
        assert.equal(await storage().recordFailures(env, 'gone', [found], NOON), 1)
        await deleteAll(storage(), await erase(storage(), env, subject))
        const { rows } = await storage().listRuns(env, { hasGaps: true }, { limit: 10, after: null })
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

    test('takes messages about a run and about an alert of its agent, whatever is erased; none comes afterwards', async () => {
      const subjects: Subject[] = [
        { kind: 'run', subject: 'gone' },
        { kind: 'session', subject: 's' },
        { kind: 'agent', subject: 'bot' },
        { kind: 'client', subject: 'erased client' },
      ]
      for (const subject of subjects) {
        const env = await newEnvironment(storage())
        const ids = { runId: 'gone', sessionId: 's', agentId: 'bot', agentName: 'Bot', clientId: 'erased client' }
        const failed = { failure: sampleFailure(), payload: '{"error":"x"}' }
        await append(storage(), env, event({ ...ids, ...failed }), event({ runId: 'kept', ...failed }))
        const { id: webhookId } = await newWebhook(storage(), env, { events: ['run.failed', 'alert.firing'] })
        const told = async () =>
          (await storage().listDeliveries(env, webhookId, {}, { limit: 10, after: null })).rows.length
        const owner = newId()
        const claim = { kind: 'find_failures', owner, now: NOON + HOUR, leaseUntil: NOON + HOUR, limit: 1_000 } as const
        const items = (await storage().claimWork(claim)).filter(({ environmentId }) => environmentId === env)
        const runs = [await runOf(storage(), env, 'gone'), await runOf(storage(), env, 'kept')] as const
        const tell = (run: { id: string; runId: string }, from: number) => {
          const data = { runId: run.runId, sessionId: run === runs[0] ? 's' : null, agentId: null }
          const hold = { kind: 'find_failures', owner, items: items.slice(from, from + 1) } as const
          return storage().tellOfRun(hold, env, run.id, { type: 'run.failed', at: NOON, data })
        }
        const tellAlert = (agentId: string) => {
          const news = { type: 'alert.firing', data: { agentId } } as const
          return storage().testAlert({ environmentId: env, id: newId(), at: NOON }, news, [])
        }
        assert.equal(await tell(runs[0], 0), true)
        await tellAlert(runs[0].agentId)
        await tellAlert(runs[1].agentId)
        assert.equal(await told(), 3)
        await deleteAll(storage(), await erase(storage(), env, subject))
        assert.equal(await told(), subject.kind === 'agent' ? 1 : 2, subject.kind)
        assert.equal(await tell(runs[0], 1), true)
        assert.equal(await told(), subject.kind === 'agent' ? 1 : 2, 'a run that is gone')
        await storage().removeWebhook(env, webhookId, [])
      }
    })

    test('of a run whose payloads are gone takes no usage from others', async () => {
      const env = await newEnvironment(storage())
      await append(storage(), env, call({ runId: 'gone' }), toolCall({ runId: 'gone' }), event({ runId: 'gone' }))
      await append(storage(), env, call({ runId: 'kept' }))
      const environment = `environment_id = ${eventEnvironment({ dialect: storage().engine })}`
      const { number } = (await storage().listUnpackedRuns(env, 0, 10)).find(({ runId }) => runId === 'gone')!
      const removed = "payload = '', payload_bytes = 0, payload_sum = NULL"
      await changeShared(open, `UPDATE events SET ${removed} WHERE ${environment} AND run = ${number}`, env)
      await erase(storage(), env, { kind: 'run', subject: 'gone' })
      const counts = [...(await usage(storage(), env)), ...(await tools(storage(), env)).flat()]
      const numbers = counts.flatMap((row) => (typeof row === 'object' && row !== null ? Object.values(row) : [row]))
      assert.deepEqual(
        numbers.filter((one) => typeof one === 'number' && one < 0),
        [],
      )
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
      // Own models, "other" and the tool.
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

    test('of a run refuses every later approval and issue record of it', async () => {
      const env = newId()
      await erase(storage(), env, { kind: 'run', subject: 'gone' })
      const named = { runId: 'gone', createdAt: LATER + HOUR }
      assert.equal((await storage().createApproval(request(env, named))).outcome, 'erased')
      assert.equal(await storage().receiveIssueRecord(issueRecord(env, { ...named, detectedAt: LATER + HOUR })), null)
    })

    test('holds for an import of an older export', async () => {
      const env = await newEnvironment(storage())
      await append(
        storage(),
        env,
        // Its clock is ahead of the erasure.
        event({ agentId: 'gone', agentName: 'Grace', time: LATER + HOUR / 60 }),
        event({ runId: 'b', agentId: 'kept' }),
      )
      await storage().createApproval(request(env, { agentId: 'gone' }))
      await reviewed(storage(), issueRecord(env, { agentId: 'gone' }))
      const tables = ['agent', 'approval', 'issueRecord', 'issue'] as const
      const exported = []
      for (const table of tables) {
        const { rows } = await storage().readExported(env, table, null, 10)
        exported.push({ table, rows: rows.filter((row) => row['externalId'] !== 'kept') })
      }
      assert.deepEqual(await storage().importRows(env, 'agent', exported[0]!.rows, NOON), {
        outcome: 'imported',
        written: 0,
      })
      await erase(storage(), env, { kind: 'agent', subject: 'gone' })
      for (const { table, rows } of exported) {
        assert.equal(rows.length, 1, table)
        assert.deepEqual(await storage().importRows(env, table, rows, NOON), { outcome: 'erased', index: 0 }, table)
        const left = await storage().readExported(env, table, null, 10)
        assert.deepEqual(
          left.rows.filter((row) => row['externalId'] !== 'kept'),
          [],
          table,
        )
      }
    })

    test('takes approvals and issue records that are sent again while it works', async () => {
      const env = newId()
      const asked = Array.from({ length: 20 }, () => request(env, { sessionId: 's' }))
      const records = asked.map(() => issueRecord(env, { runId: null, sessionId: 's' }))
      for (const one of asked) await storage().createApproval(one)
      for (const one of records) await storage().receiveIssueRecord(one)
      const retries = [...asked, ...asked].map((one) => storage().createApproval({ ...one, id: newId() }))
      const late = [...records, ...records].map((one) => storage().receiveIssueRecord({ ...one, id: newId() }))
      await erase(storage(), env, { kind: 'session', subject: 's' })
      await Promise.all([...retries, ...late])
      const { rows } = await storage().listApprovals(env, {}, { limit: 100, after: null })
      const left = await storage().listIssueRecords(env, {}, { limit: 100, after: null })
      assert.deepEqual([rows.length, left.rows.length], [0, 0])
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

    test('races with appends: an event is either erased with the session or refused', async () => {
      const env = newId()
      const verdicts: string[] = []
      const appends = Array.from({ length: 12 }, async (_, index) => {
        for (let round = 0; round < 8; round++) {
          const runId = `run-${(index + round) % 7}`
          const sent = Array.from({ length: 5 }, () => call({ runId, sessionId: 's' }, 1))
          verdicts.push(...(await append(storage(), env, ...sent)))
        }
      })
      await appends[0]
      const erasure = await erase(storage(), env, { kind: 'session', subject: 's' })
      await Promise.all(appends)
      assert.ok(verdicts.every((verdict) => verdict === 'stored' || verdict === 'erased'))
      assert.deepEqual(await runIds(storage(), env), [])
      assert.deepEqual(await usage(storage(), env), [])
      assert.equal(erasure.events, verdicts.filter((verdict) => verdict === 'stored').length)
      await deleteAll(storage(), erasure, 100)
      const kept = call({ runId: 'run-1', sessionId: 'other' })
      assert.deepEqual(await append(storage(), env, { ...kept, time: LATER + 1 }), ['stored'])
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
