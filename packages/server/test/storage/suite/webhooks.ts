import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Storage } from '../../../src/storage/storage.ts'
import type { DeliveryAttempt, WebhookRow } from '../../../src/storage/webhooks.ts'
import { ask, decision, MINUTE } from './approval-sample.ts'
import { auditEntry, change, issueRecord, onlyIssue, reviewed } from './issue-sample.ts'
import { sharedStorage, type OpenStorage } from './open.ts'
import { newId, NOON } from './sample.ts'

const KIND = 'deliver_webhook'

async function newEnvironment(storage: Storage): Promise<string> {
  const [workspaceId, id] = [newId(), newId()]
  await storage.createWorkspace({ id: workspaceId, name: workspaceId, createdAt: NOON }, [])
  await storage.createEnvironment({ id, workspaceId, name: 'production', createdAt: NOON }, [])
  return id
}

async function newWebhook(
  storage: Storage,
  environmentId: string,
  given: Partial<WebhookRow> = {},
): Promise<WebhookRow> {
  const row: WebhookRow = {
    id: newId(),
    environmentId,
    url: 'https://example.com/hook',
    description: '',
    format: 'standard',
    events: ['approval.requested', 'approval.decided', 'approval.expired', 'issue.opened', 'issue.regressed'],
    secret: 'whsec_AAAA',
    previousSecret: null,
    previousUntil: null,
    createdAt: NOON,
    disabledAt: null,
    disabledReason: null,
    ...given,
  }
  assert.equal(await storage.createWebhook(row, []), 'created')
  return row
}

export function webhooksSuite(open: OpenStorage) {
  const all = { limit: 1_000, after: null }

  describe('a webhook', () => {
    const storage = sharedStorage(open)

    test('is stored whole, changed in part, and found within its environment only', async () => {
      const env = await newEnvironment(storage())
      const row = await newWebhook(storage(), env, { url: `https://example.com/${'é'.repeat(900)}`, format: 'slack' })
      assert.deepEqual(await storage().findWebhook(env, row.id), row)
      assert.equal(await storage().findWebhook(newId(), row.id), null)
      const disabled = await storage().changeWebhook(env, row.id, { disabledAt: NOON, events: ['issue.opened'] }, [])
      assert.deepEqual(disabled, { ...row, disabledAt: NOON, events: ['issue.opened'] })
      assert.deepEqual(await storage().changeWebhook(env, row.id, { disabledAt: null }, []), {
        ...row,
        events: ['issue.opened'],
      })
      assert.equal(await storage().changeWebhook(newId(), row.id, { description: 'x' }, []), null)
    })

    test('is one of at most twenty in an environment', async () => {
      const env = await newEnvironment(storage())
      for (let index = 0; index < 20; index++) await newWebhook(storage(), env)
      const row = (await storage().listWebhooks(env, all))[0]
      assert.ok(row)
      assert.equal(await storage().createWebhook({ ...row, id: newId() }, []), 'too_many')
      assert.equal((await storage().listWebhooks(env, all)).length, 20)
    })

    test('goes with its deliveries and the work for them', async () => {
      const env = await newEnvironment(storage())
      const { id } = await newWebhook(storage(), env)
      await ask(storage(), env)
      const [delivery] = await storage().listDeliveries(id, {}, all)
      assert.ok(delivery)
      await storage().removeWebhook(env, id, [auditEntry(env, 'webhook.remove')])
      assert.equal(await storage().startDelivery(delivery.id), null)
      assert.deepEqual(await storage().listDeliveries(id, {}, all), [])
      assert.equal(await storage().removeWebhook(env, id, []), null)
    })
  })

  describe('webhooks are told', () => {
    const storage = sharedStorage(open)

    async function told(environmentId: string): Promise<{ type: string; data: Record<string, unknown> }[]> {
      const messages: { type: string; data: Record<string, unknown> }[] = []
      for (const webhook of await storage().listWebhooks(environmentId, all)) {
        const deliveries = await storage().listDeliveries(webhook.id, {}, all)
        for (const { id } of deliveries.toReversed()) {
          const order = await storage().startDelivery(id)
          if (order)
            messages.push({
              type: order.delivery.type,
              data: JSON.parse(order.delivery.data) as object & Record<string, unknown>,
            })
        }
      }
      return messages
    }

    test('of a request once, of its decision, and of its expiry, however that is found out', async () => {
      const env = await newEnvironment(storage())
      await newWebhook(storage(), env)
      const first = await ask(storage(), env, { clientRequestId: 'one' })
      await storage().createApproval({ ...first, id: newId() })
      await storage().decideApprovals(env, [first.id, newId()], decision(), [])
      await storage().decideApprovals(env, [first.id], decision(), [])
      const [second, third] = [await ask(storage(), env), await ask(storage(), env)]
      const late = decision({ now: second.expiresAt + 1 })
      await storage().decideApprovals(env, [second.id], late, [])
      await storage().expireApprovals(env, third.expiresAt + 1, 10)
      await storage().expireApprovals(env, third.expiresAt + MINUTE, 10)
      const messages = await told(env)
      const found = messages.map(({ type, data }) => [type, data['approvalId'], data['status']].join(' '))
      // What happens within a millisecond has no order.
      assert.deepEqual(
        found.toSorted(),
        [
          `approval.requested ${first.id} PENDING`,
          `approval.decided ${first.id} APPROVED`,
          `approval.requested ${second.id} PENDING`,
          `approval.requested ${third.id} PENDING`,
          `approval.expired ${second.id} EXPIRED`,
          `approval.expired ${third.id} EXPIRED`,
        ].toSorted(),
      )
    })

    test('of a new issue, and of one that comes back, not of every occurrence', async () => {
      const env = await newEnvironment(storage())
      await newWebhook(storage(), env)
      await reviewed(storage(), issueRecord(env), issueRecord(env))
      await reviewed(storage(), issueRecord(env))
      const { id } = await onlyIssue(storage(), env)
      await storage().changeIssueState({ environmentId: env, id }, 'RESOLVED', change(), [])
      await reviewed(storage(), issueRecord(env))
      const found = (await told(env)).map(({ type, data }) => [type, data['issueId'], data['occurrences']].join(' '))
      assert.deepEqual(found.toSorted(), [`issue.opened ${id} 2`, `issue.regressed ${id} 4`])
    })

    test('only of what they ask for, while they are enabled, in their own environment', async () => {
      const env = await newEnvironment(storage())
      const other = await newEnvironment(storage())
      await newWebhook(storage(), env, { events: ['issue.opened'] })
      await newWebhook(storage(), env, { disabledAt: NOON })
      await newWebhook(storage(), other)
      await ask(storage(), env)
      assert.deepEqual(await told(env), [])
      assert.deepEqual(await told(other), [])
    })
  })

  describe('a delivery', () => {
    const storage = sharedStorage(open)

    async function held() {
      const env = await newEnvironment(storage())
      const webhook = await newWebhook(storage(), env)
      const { id } = await storage().sendToWebhook(
        { id: newId(), webhookId: webhook.id, environmentId: env, type: 'webhook.test', createdAt: 1, data: '{"a":1}' },
        [],
      )
      const owner = newId()
      const claim = { kind: KIND, owner, now: 1, leaseUntil: NOON, limit: 1 } as const
      assert.deepEqual(
        (await storage().claimWork(claim)).map(({ subjectId }) => subjectId),
        [id],
      )
      const attempt: DeliveryAttempt = {
        id,
        webhookId: webhook.id,
        owner,
        at: NOON,
        status: 'DELIVERED',
        nextAttemptAt: null,
        responseStatus: 200,
        error: null,
        disable: null,
      }
      return { env, webhook, id, attempt }
    }

    test('ends with its work, and can be sent again', async () => {
      const { webhook, id, attempt } = await held()
      await storage().recordAttempt(attempt)
      const [row] = await storage().listDeliveries(webhook.id, { status: 'DELIVERED' }, all)
      assert.deepEqual([row?.id, row?.attempts, row?.responseStatus, row?.nextAttemptAt], [id, 1, 200, null])
      const again = await storage().redeliver(webhook.id, id, 2, [])
      assert.ok(again !== null && again !== 'waiting')
      assert.deepEqual([again.status, again.attempts, again.nextAttemptAt], ['PENDING', 0, 2])
      assert.equal(await storage().redeliver(webhook.id, id, 3, []), 'waiting')
      assert.equal(await storage().redeliver(webhook.id, newId(), 3, []), null)
      await storage().finishWork({ kind: KIND, owner: newId(), subjectIds: [id] })
      const claim = { kind: KIND, owner: attempt.owner, now: 2, leaseUntil: NOON, limit: 100 } as const
      const items = await storage().claimWork(claim)
      assert.ok(items.some(({ subjectId }) => subjectId === id))
      await storage().recordAttempt(attempt)
    })

    test('that failed waits for its next attempt, which the queue does not count', async () => {
      const { webhook, id, attempt } = await held()
      const failed = { status: 'PENDING', nextAttemptAt: NOON + 5, responseStatus: 500, error: 'no' } as const
      await storage().recordAttempt({ ...attempt, ...failed })
      const [row] = await storage().listDeliveries(webhook.id, {}, all)
      assert.deepEqual([row?.status, row?.attempts, row?.error, row?.nextAttemptAt], ['PENDING', 1, 'no', NOON + 5])
      const claim = { kind: KIND, owner: attempt.owner, leaseUntil: NOON * 2, limit: 100 } as const
      assert.ok(!(await storage().claimWork({ ...claim, now: NOON + 4 })).some(({ subjectId }) => subjectId === id))
      const taken = (await storage().claimWork({ ...claim, now: NOON + 5 })).find(({ subjectId }) => subjectId === id)
      assert.equal(taken?.attempts, 1)
      await storage().recordAttempt(attempt)
    })

    test('to a receiver that is gone disables its webhook', async () => {
      const { env, webhook, attempt } = await held()
      await storage().recordAttempt({ ...attempt, status: 'FAILED', responseStatus: 410, disable: 'gone' })
      const row = await storage().findWebhook(env, webhook.id)
      assert.deepEqual([row?.disabledAt, row?.disabledReason], [NOON, 'gone'])
    })

    test('is forgotten when five hundred newer ones have ended', async () => {
      const { env, webhook, id, attempt } = await held()
      await storage().recordAttempt(attempt)
      const send = (index: number) => ({
        id: `ffffffff-0000-7000-8000-${String(index).padStart(12, '0')}`,
        webhookId: webhook.id,
        environmentId: env,
        type: 'webhook.test',
        createdAt: NOON,
        data: '{}',
      })
      for (let index = 0; index < 501; index++) await storage().sendToWebhook(send(index), [])
      await storage().recordAttempt({ ...attempt, id: send(0).id })
      const rows = await storage().listDeliveries(webhook.id, {}, { limit: 2_000, after: null })
      assert.ok(!rows.some((row) => row.id === id))
      assert.equal(rows.length, 500)
      await storage().removeWebhook(env, webhook.id, [])
    })
  })
}
