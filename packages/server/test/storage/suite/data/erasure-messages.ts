/** An erasure removes notifications and webhook messages about a run, and other rows that name it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { erase, deleteAll, type Subject } from './erasure-sample.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, HOUR, newEnvironment, newId, NOON, runOf, sampleFailure } from '../sample.ts'
import { newWebhook } from '../messages/webhooks.ts'

export function erasureMessagesSuite(open: OpenStorage) {
  describe('an erasure of what was told', () => {
    const storage = sharedStorage(open)

    test('takes what was said of approvals and views that are gone or changed', async () => {
      const env = await newEnvironment(storage())
      await append(storage(), env, event({ runId: 'gone', sessionId: 's', agentId: 'bot' }))
      const targets = { decision: newId(), other: newId(), view: newId(), score: newId() }
      const audited = (targetKind: string, targetId: string, detail: object) => {
        const place = {
          id: newId(),
          workspaceId: newId(),
          environmentId: env,
          at: NOON,
          requestId: 'request',
          address: null,
        }
        const actor = {
          actorKind: 'operator' as const,
          actorId: newId(),
          actorName: 'Ada',
          action: `${targetKind}.change`,
        }
        return { ...place, ...actor, targetKind, targetId, detail: JSON.stringify(detail) }
      }
      // The approvals and a scored run were removed by retention, and the view no longer filters by the session.
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

    test('takes saved views that filter by what is erased, also by a score or metadata that names it', async () => {
      const env = await newEnvironment(storage())
      await append(storage(), env, event({ runId: 'gone', sessionId: 's' }))
      const scores = [{ score: 's' }, { score: 'reviewer=s' }, { score: 'reviewer=other' }]
      const queries = [{ sessionId: 's' }, { tag: 's' }, { metadata: 'customer=s' }, ...scores]
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
  })
}
