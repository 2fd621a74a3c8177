import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Storage } from '../../../../src/storage/storage.ts'
import type { DeliveryAttempt, WebhookRow } from '../../../../src/storage/messages/messages.ts'
import { ask, decision, MINUTE } from '../approvals/approval-sample.ts'
import { auditEntry, change, issueRecord, onlyIssue, reviewed } from '../issues/issue-sample.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, newId, NOON } from '../sample.ts'

const KIND = 'deliver_webhook'

export async function newEnvironment(storage: Storage): Promise<string> {
  const [workspaceId, id] = [newId(), newId()]
  await storage.createWorkspace({ id: workspaceId, name: workspaceId, createdAt: NOON }, [])
  await storage.createEnvironment({ id, workspaceId, name: 'production', createdAt: NOON }, [])
  return id
}

export async function newWebhook(
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
    signingSecret: null,
    showsInput: false,
    createdAt: NOON,
    disabledAt: null,
    disabledReason: null,
    droppedDeliveries: 0,
    ...given,
  }
  assert.equal(await storage.createWebhook(row, []), 'created')
  return row
}

/** Takes every waiting delivery, also ones that are leased. Returns the new leases and the ids. */
function claimingAll(storage: () => Storage): () => Promise<[owner: string, ids: string[]]> {
  let now = NOON * 2
  return async () => {
    const owner = newId()
    now += 2
    const items = await storage().claimWork({ kind: KIND, owner, now, leaseUntil: now + 1, limit: 10_000 })
    return [owner, items.map(({ subjectId }) => subjectId)]
  }
}

export function webhooksSuite(open: OpenStorage) {
  const all = { limit: 1_000, after: null }

  describe('a webhook', () => {
    const storage = sharedStorage(open)

    test('shows inputs or not, as it was made and changed', async () => {
      const environmentId = await newEnvironment(storage())
      const { id } = await newWebhook(storage(), environmentId, { showsInput: true })
      assert.equal((await storage().findWebhook(environmentId, id))?.showsInput, true)
      assert.equal((await storage().changeWebhook(environmentId, id, { showsInput: false }, []))?.showsInput, false)
    })
    const claimAll = claimingAll(storage)

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

    test('is limited to twenty in an environment', async () => {
      const env = await newEnvironment(storage())
      for (let index = 0; index < 20; index++) await newWebhook(storage(), env)
      const row = (await storage().listWebhooks(env, all)).rows[0]
      assert.ok(row)
      assert.equal(await storage().createWebhook({ ...row, id: newId() }, []), 'too_many')
      assert.equal((await storage().listWebhooks(env, all)).rows.length, 20)
    })

    test('is limited to twenty also when many are created at once', async () => {
      const env = await newEnvironment(storage())
      const row = await newWebhook(storage(), env)
      const outcomes = await Promise.all(
        Array.from({ length: 40 }, () => storage().createWebhook({ ...row, id: newId() }, [])),
      )
      assert.equal(outcomes.filter((outcome) => outcome === 'created').length, 19)
      assert.equal((await storage().listWebhooks(env, all)).rows.length, 20)
    })

    test('keeps its thousand newest messages while its receiver is unreachable, and counts the dropped ones', async () => {
      const env = await newEnvironment(storage())
      const { id: webhookId } = await newWebhook(storage(), env)
      const send = (index: number) => {
        const id = `ffffffff-0000-7000-8000-${String(index).padStart(12, '0')}`
        const delivery = {
          id,
          webhookId,
          environmentId: env,
          type: 'webhook.test',
          createdAt: NOON + index,
          data: '{}',
        }
        return storage().sendToWebhook(delivery, [])
      }
      const pending = async () =>
        (await storage().listDeliveries(env, webhookId, { status: 'PENDING' }, { limit: 2_000, after: null })).rows.map(
          ({ id }) => Number(id.slice(-12)),
        )
      await send(0)
      const [owner] = await claimAll()
      // In groups: if all ran at once, the last one could wait too long for a connection on a busy machine.
      for (let first = 1; first < 1_000; first += 111) {
        await Promise.all(Array.from({ length: 111 }, (_, index) => send(first + index)))
      }
      assert.equal((await pending()).length, 1_000)
      assert.equal((await storage().findWebhook(env, webhookId))?.droppedDeliveries, 0)
      for (let index = 1_000; index < 1_010; index++) await send(index)
      // The oldest delivery is being sent, so it is kept in addition to the thousand.
      const rest = await pending()
      assert.deepEqual([rest.length, rest.at(0), rest.at(-2), rest.at(-1)], [1_001, 1_009, 10, 0])
      assert.equal((await storage().findWebhook(env, webhookId))?.droppedDeliveries, 9)
      assert.ok(
        await storage().startDelivery({ environmentId: env, id: 'ffffffff-0000-7000-8000-000000000000', owner }),
      )
      const [, queued] = await claimAll()
      assert.equal(queued.length, 1_001)
      await storage().removeWebhook(env, webhookId, [])
    })

    test('is deleted together with its deliveries and their work', async () => {
      const env = await newEnvironment(storage())
      const { id } = await newWebhook(storage(), env)
      await ask(storage(), env)
      const [delivery] = (await storage().listDeliveries(env, id, {}, all)).rows
      assert.ok(delivery)
      const [owner] = await claimAll()
      assert.ok(await storage().startDelivery({ environmentId: env, id: delivery.id, owner }))
      await storage().removeWebhook(env, id, [auditEntry(env, 'webhook.remove')])
      assert.equal(await storage().startDelivery({ environmentId: env, id: delivery.id, owner }), null)
      assert.deepEqual((await storage().listDeliveries(env, id, {}, all)).rows, [])
      assert.deepEqual((await claimAll())[1], [])
      assert.equal(await storage().removeWebhook(env, id, []), null)
    })
  })

  describe('a webhook message is sent', () => {
    const storage = sharedStorage(open)
    const claimAll = claimingAll(storage)

    async function told(environmentId: string): Promise<{ type: string; data: Record<string, unknown> }[]> {
      const messages: { type: string; data: Record<string, unknown> }[] = []
      const [owner] = await claimAll()
      for (const webhook of (await storage().listWebhooks(environmentId, all)).rows) {
        const deliveries = (await storage().listDeliveries(environmentId, webhook.id, {}, all)).rows
        for (const { id } of deliveries.toReversed()) {
          const order = await storage().startDelivery({ environmentId, id, owner })
          if (order)
            messages.push({
              type: order.delivery.type,
              data: JSON.parse(order.delivery.data) as object & Record<string, unknown>,
            })
        }
      }
      return messages
    }

    test('once for a request, for its decision, and for its expiry, however that is detected', async () => {
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
      // Ids of one millisecond have no order, so compare sets.
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

    test('with the name of the agent, as operators see it', async () => {
      const env = await newEnvironment(storage())
      await newWebhook(storage(), env)
      await append(storage(), env, event({ agentId: 'bot-7', agentName: 'Support bot' }))
      await ask(storage(), env, { agentId: 'bot-7' })
      await ask(storage(), env, { agentId: 'unknown' })
      const found = (await told(env)).map(({ data }) => [data['agentId'], data['agentName']].join(' '))
      assert.deepEqual(found.toSorted(), ['bot-7 Support bot', 'unknown '])
    })

    test('for a new issue and for a regression, not for every occurrence', async () => {
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

    test('only for the events a webhook subscribes to, while it is enabled, in its own environment', async () => {
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
        environmentId: env,
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
      const { env, webhook, id, attempt } = await held()
      assert.equal(await storage().recordAttempt(attempt), true)
      const [row] = (await storage().listDeliveries(env, webhook.id, { status: 'DELIVERED' }, all)).rows
      assert.deepEqual([row?.id, row?.attempts, row?.responseStatus, row?.nextAttemptAt], [id, 1, 200, null])
      const again = await storage().redeliver(env, webhook.id, id, 2, [])
      assert.ok(again !== null && again !== 'waiting')
      assert.deepEqual([again.status, again.attempts, again.nextAttemptAt], ['PENDING', 0, 2])
      assert.equal(await storage().redeliver(env, webhook.id, id, 3, []), 'waiting')
      assert.equal(await storage().redeliver(env, webhook.id, newId(), 3, []), null)
      assert.equal(await storage().redeliver(newId(), webhook.id, id, 3, []), null)
      assert.deepEqual((await storage().listDeliveries(newId(), webhook.id, {}, all)).rows, [])
      await storage().finishWork({ kind: KIND, owner: newId(), items: [{ environmentId: env, subjectId: id }] })
      const claim = { kind: KIND, owner: attempt.owner, now: 2, leaseUntil: NOON, limit: 100 } as const
      const items = await storage().claimWork(claim)
      assert.ok(items.some(({ subjectId }) => subjectId === id))
      await storage().recordAttempt(attempt)
    })

    test('that failed waits for its next attempt, and its work counts attempts from one again', async () => {
      const { env, webhook, id, attempt } = await held()
      const failed = { status: 'PENDING', nextAttemptAt: NOON + 5, responseStatus: 500, error: 'no' } as const
      await storage().recordAttempt({ ...attempt, ...failed })
      const [row] = (await storage().listDeliveries(env, webhook.id, {}, all)).rows
      assert.deepEqual([row?.status, row?.attempts, row?.error, row?.nextAttemptAt], ['PENDING', 1, 'no', NOON + 5])
      const claim = { kind: KIND, owner: attempt.owner, leaseUntil: NOON * 2, limit: 100 } as const
      assert.ok(!(await storage().claimWork({ ...claim, now: NOON + 4 })).some(({ subjectId }) => subjectId === id))
      const taken = (await storage().claimWork({ ...claim, now: NOON + 5 })).find(({ subjectId }) => subjectId === id)
      assert.equal(taken?.attempts, 1)
      await storage().recordAttempt(attempt)
    })

    test('whose lease another node took over is recorded by that node alone', async () => {
      const { env, webhook, id, attempt } = await held()
      const list = async () => (await storage().listDeliveries(env, webhook.id, {}, all)).rows
      const other = newId()
      await storage().claimWork({ kind: KIND, owner: other, now: NOON, leaseUntil: NOON + 1, limit: 1_000 })
      const retry = { status: 'PENDING', nextAttemptAt: NOON + 5, responseStatus: 500, error: 'no' } as const
      for (const late of [retry, { status: 'DELIVERED' }, { status: 'FAILED', disable: 'gone' }] as const) {
        assert.equal(await storage().recordAttempt({ ...attempt, ...late }), false)
      }
      assert.equal(await storage().startDelivery({ environmentId: env, id, owner: attempt.owner }), null)
      assert.deepEqual(
        (await list()).map(({ status, attempts, error }) => [status, attempts, error]),
        [['PENDING', 0, null]],
      )
      assert.equal((await storage().findWebhook(env, webhook.id))?.disabledAt, null)
      assert.equal(await storage().recordAttempt({ ...attempt, owner: other }), true)
      // The first node ends its own attempt last: the delivery stays delivered, and can be sent again.
      assert.equal(await storage().recordAttempt({ ...attempt, ...retry }), false)
      assert.deepEqual(
        (await list()).map(({ status, attempts }) => [status, attempts]),
        [['DELIVERED', 1]],
      )
      const again = await storage().redeliver(env, webhook.id, id, NOON, [])
      assert.ok(again !== null && again !== 'waiting')
      await storage().removeWebhook(env, webhook.id, [])
    })

    test('that the receiver answers with 410 Gone disables its webhook', async () => {
      const { env, webhook, attempt } = await held()
      await storage().recordAttempt({ ...attempt, status: 'FAILED', responseStatus: 410, disable: 'gone' })
      const row = await storage().findWebhook(env, webhook.id)
      assert.deepEqual([row?.disabledAt, row?.disabledReason], [NOON, 'gone'])
    })

    test('is deleted when five hundred newer ones have ended', async () => {
      const { env, webhook, id, attempt } = await held()
      await storage().recordAttempt(attempt)
      const { owner } = attempt
      const send = (index: number) => ({
        id: `ffffffff-0000-7000-8000-${String(index).padStart(12, '0')}`,
        webhookId: webhook.id,
        environmentId: env,
        type: 'webhook.test',
        createdAt: NOON,
        data: '{}',
      })
      for (let index = 0; index < 501; index++) await storage().sendToWebhook(send(index), [])
      const claimed = await storage().claimWork({ kind: KIND, owner, now: NOON, leaseUntil: NOON + 1, limit: 10_000 })
      assert.ok(claimed.some(({ subjectId }) => subjectId === send(0).id))
      await storage().recordAttempt({ ...attempt, id: send(0).id })
      const rows = (await storage().listDeliveries(env, webhook.id, {}, { limit: 2_000, after: null })).rows
      assert.ok(!rows.some((row) => row.id === id))
      assert.equal(rows.length, 500)
      await storage().removeWebhook(env, webhook.id, [])
    })
  })
}
