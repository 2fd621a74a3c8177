import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deliverWebhooks, type DeliverOptions } from '../../src/jobs/deliver-webhooks.ts'
import type { DeliveryOrder } from '../../src/storage/webhooks.ts'

test("a receiver that does not answer holds up its own messages, and nobody else's", async () => {
  let clock = 1_000_000
  const sent: string[] = []
  const done: string[] = []
  const postponed: [string, number, boolean][] = []
  const storage: DeliverOptions['storage'] = {
    // The id of a delivery begins with the name of its webhook.
    startDelivery: (id) => Promise.resolve(orderOf(id)),
    recordAttempt: ({ id, status }) => Promise.resolve(void done.push(`${id} ${status}`)),
    finishWork: () => Promise.resolve(),
    postponeWork: ({ subjectIds }, { dueAt, counts }) =>
      Promise.resolve(subjectIds.forEach((id) => postponed.push([id, dueAt, counts]))),
  }
  const sender: DeliverOptions['sender'] = {
    check: () => Promise.resolve(null),
    close: () => Promise.resolve(),
    send(url) {
      sent.push(url)
      if (url !== 'silent') return Promise.resolve({ ok: true, status: 200 })
      clock += 10_000
      return Promise.resolve({ ok: false, status: null, error: 'No answer' })
    },
  }
  const { perform } = deliverWebhooks({ storage, sender, owner: 'node', now: () => clock, random: () => 0 })
  const go = (...ids: string[]) =>
    perform(
      ids.map((subjectId) => ({ subjectId, environmentId: 'e', attempts: 1, lastError: null })),
      new AbortController().signal,
    )

  await go('silent-1')
  await go('silent-2', 'quick-1', 'silent-3', 'quick-2')
  assert.deepEqual(sent, ['silent', 'quick', 'quick'])
  assert.deepEqual(postponed, [
    ['silent-2', clock + 30_000, false],
    ['silent-3', clock + 30_000, false],
  ])
  clock += 30_000
  await go('silent-2')
  assert.deepEqual(done, ['silent-1 PENDING', 'quick-1 DELIVERED', 'quick-2 DELIVERED', 'silent-2 PENDING'])
})

function orderOf(id: string): DeliveryOrder {
  const webhookId = id.split('-')[0] ?? ''
  const unused = { environmentId: 'e', description: '', events: [], previousSecret: null, previousUntil: null }
  return {
    webhook: {
      ...unused,
      id: webhookId,
      url: webhookId,
      format: 'standard',
      secret: 'whsec_c2VjcmV0',
      createdAt: 0,
      disabledAt: null,
      disabledReason: null,
    },
    delivery: {
      id,
      type: 'webhook.test',
      status: 'PENDING',
      attempts: 0,
      createdAt: 0,
      lastAttemptAt: null,
      nextAttemptAt: null,
      responseStatus: null,
      error: null,
      data: '{}',
    },
  }
}
