import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deliverWebhooks, type DeliverOptions } from '../../../src/jobs/messages/deliver-webhooks.ts'
import type { ItemHandler } from '../../../src/jobs/engine/work.ts'
import { UNDECIDED } from '../../../src/storage/approvals/approvals.ts'
import { request as newRequest } from '../../storage/suite/approvals/approval-sample.ts'
import type { DeliveryOrder } from '../../../src/storage/messages/messages.ts'

const pages: DeliverOptions['pages'] = { placeOf: () => Promise.resolve(null) }

/** Performs items at the same time, as the job does. Returns those that are postponed, with the time when they are due. */
async function performed(handler: ItemHandler, ...ids: string[]): Promise<[id: string, dueAt: number][]> {
  const later = ids.map(async (subjectId): Promise<[string, number][]> => {
    const item = { subjectId, environmentId: 'e', attempts: 1, lastError: null }
    const hold = { kind: handler.kind, owner: 'node', items: [item] }
    const next = await handler.perform(item, hold, new AbortController().signal)
    return typeof next === 'object' ? [[subjectId, next.dueAt]] : []
  })
  return (await Promise.all(later)).flat()
}

const NO_INPUTS = {
  findApprovals: () => Promise.resolve([]),
  findLinkedInputs: () => Promise.resolve([]),
  findRecordedInputs: () => Promise.resolve([]),
  findRanBefore: () => Promise.resolve([]),
  findPolicyVersion: () => Promise.resolve(null),
  findVersionsInForce: () => Promise.resolve({ atThatTime: null, now: null }),
}

test('a receiver that does not answer delays its own messages, and no others', async () => {
  let clock = 1_000_000
  const sent: string[] = []
  const done: string[] = []
  const postponed: [string, number][] = []
  const storage: DeliverOptions['storage'] = {
    // The id of a delivery starts with the name of its webhook.
    startDelivery: ({ id }) => Promise.resolve(orderOf(id)),
    recordAttempt: ({ id, status }) => Promise.resolve(done.push(`${id} ${status}`) > 0),
    ...NO_INPUTS,
    isMemberAt: () => Promise.resolve(true),
  }
  const sender: DeliverOptions['sender'] = {
    send({ url }) {
      sent.push(url)
      if (url !== 'silent') return Promise.resolve({ ok: true, status: 200 })
      clock += 10_000
      return Promise.resolve({ ok: false, status: null, error: 'No answer' })
    },
  }
  const times = { now: () => clock, monotonicNow: () => clock }
  const handler = deliverWebhooks({ storage, sender, pages, ...times, random: () => 0 })
  const go = async (...ids: string[]) => postponed.push(...(await performed(handler, ...ids)))

  await go('silent-1')
  await go('silent-2', 'quick-1', 'silent-3', 'quick-2')
  assert.deepEqual(sent, ['silent', 'quick', 'quick'])
  assert.deepEqual(postponed, [
    ['silent-2', clock + 30_000],
    ['silent-3', clock + 30_000],
  ])
  clock += 30_000
  await go('silent-2')
  assert.deepEqual(done, ['silent-1 PENDING', 'quick-1 DELIVERED', 'quick-2 DELIVERED', 'silent-2 PENDING'])
})

test('a clock that is set forward while a message is sent pauses no receiver', async () => {
  let ahead = 0
  const sent: string[] = []
  const storage: DeliverOptions['storage'] = {
    startDelivery: ({ id }) => Promise.resolve(orderOf(id)),
    recordAttempt: () => Promise.resolve(true),
    ...NO_INPUTS,
    isMemberAt: () => Promise.resolve(true),
  }
  const sender: DeliverOptions['sender'] = {
    send({ url }) {
      sent.push(url)
      ahead += 60_000
      return Promise.resolve({ ok: true, status: 200 })
    },
  }
  const times = { now: () => 1_000_000 + ahead, monotonicNow: () => 0 }
  const handler = deliverWebhooks({ storage, sender, pages, ...times })
  await performed(handler, 'quick-1')
  await performed(handler, 'quick-2')
  assert.deepEqual(sent, ['quick', 'quick'])
})

test('if the result of a message cannot be stored, the others under way are sent once', async () => {
  const sent: string[] = []
  const slow = Promise.withResolvers<void>()
  const recorded: string[] = []
  const storage: DeliverOptions['storage'] = {
    startDelivery: ({ id }) => Promise.resolve(orderOf(id)),
    recordAttempt({ id }) {
      if (id === 'broken-1') return Promise.reject(new Error('It cannot be recorded'))
      return Promise.resolve(recorded.push(id) > 0)
    },
    ...NO_INPUTS,
    isMemberAt: () => Promise.resolve(true),
  }
  const sender: DeliverOptions['sender'] = {
    async send({ url }) {
      sent.push(url)
      if (url === 'slow') await slow.promise
      return { ok: true, status: 200 }
    },
  }
  const handler = deliverWebhooks({ storage, sender, pages, now: () => 1, random: () => 0 })
  let ended = false
  const performing = performed(handler, 'slow-1').finally(() => (ended = true))
  await assert.rejects(performed(handler, 'broken-1'), /It cannot be recorded/)
  assert.deepEqual([sent, ended], [['slow', 'broken'], false])
  slow.resolve()
  await performing
  assert.deepEqual([sent, recorded], [['slow', 'broken'], ['slow-1']])
})

function orderOf(id: string): DeliveryOrder {
  const webhookId = id.split('-')[0] ?? ''
  const unused = {
    environmentId: 'e',
    description: '',
    events: [],
    previousSecret: null,
    previousUntil: null,
    signingSecret: null,
    showsInput: false,
  }
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
      droppedDeliveries: 0,
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

test('a mail goes to a member only, ten seconds after the one before, and waits while others are under way', async () => {
  let clock = 1_000_000
  const mails: string[] = []
  const done: string[] = []
  const postponed = new Map<string, number>()
  const storage: DeliverOptions['storage'] = {
    startDelivery({ id }) {
      const order = orderOf(id)
      const url = `mailto:${order.webhook.id}@example.com`
      // Each message belongs to a different webhook.
      return Promise.resolve({ ...order, webhook: { ...order.webhook, id, format: 'mail', url } })
    },
    recordAttempt: ({ id, status, disable }) => Promise.resolve(done.push(`${id} ${status} ${disable ?? ''}`) > 0),
    ...NO_INPUTS,
    isMemberAt: (_environment, address) => Promise.resolve(address !== 'stranger@example.com'),
  }
  const sender: DeliverOptions['sender'] = { send: () => assert.fail('a request') }
  const mail: DeliverOptions['mail'] = {
    send({ to }) {
      mails.push(to)
      if (to === 'late@example.com') return Promise.resolve('busy')
      if (to !== 'bad@example.com') return Promise.resolve({ ok: true, status: 250 })
      return Promise.resolve({ ok: false, status: 550, error: 'The mail server answered 550', isFinal: true })
    },
  }
  const handler = deliverWebhooks({ storage, sender, mail, pages, now: () => clock })
  const go = async (...ids: string[]) => {
    for (const [id, dueAt] of await performed(handler, ...ids)) postponed.set(id, dueAt)
  }
  await go('ada-1', 'ada-2', 'late-1', 'stranger-1', 'bad-1')
  assert.deepEqual(mails.toSorted(), ['ada@example.com', 'bad@example.com', 'late@example.com'])
  assert.deepEqual(Object.fromEntries(postponed), { 'ada-2': clock + 10_000, 'late-1': clock + 1_000 })
  assert.deepEqual(done.toSorted(), [
    'ada-1 DELIVERED ',
    'bad-1 FAILED ',
    'stranger-1 FAILED The address belongs to no member of the workspace',
  ])
  clock += 10_000
  await go('ada-2')
  assert.equal(done.at(-1), 'ada-2 DELIVERED ')
})

test('a message that shows the input waits a moment for it, reads it when it is sent, and goes without it then', async () => {
  let clock = 1_000_000
  let recorded: string | null = null
  const sent: string[] = []
  const postponed: number[] = []
  const request = { approvalId: 'a', toolName: 'Bash', inputHash: 'ab', runId: 'r' }
  const approval = {
    ...newRequest('env', { keyFamily: 'key', runId: 'r', toolName: 'Bash', toolCallId: 'call' }),
    ...UNDECIDED,
    revision: 1,
  }
  const storage: DeliverOptions['storage'] = {
    startDelivery({ id }) {
      const { webhook, delivery } = orderOf(id)
      const { type, data } = { type: 'approval.requested', data: JSON.stringify(request) }
      const showsInput = id !== 'closed-1'
      const ordered = { ...delivery, createdAt: 1_000_000, type, data }
      return Promise.resolve({ webhook: { ...webhook, format: 'slack', showsInput }, delivery: ordered })
    },
    recordAttempt: () => Promise.resolve(true),
    isMemberAt: () => Promise.resolve(true),
    findRecordedInputs: () => Promise.resolve([]),
    findRanBefore: () => Promise.resolve([{ approvalId: 'earlier', at: 1_000_000, status: 'returned' }]),
    findPolicyVersion: () => Promise.resolve(null),
    findVersionsInForce: () => Promise.resolve({ atThatTime: null, now: null }),
    findApprovals: () => Promise.resolve([{ ...approval, inputEventId: recorded && 'event' }]),
    findLinkedInputs(_environment, links) {
      assert.deepEqual(links, [{ runId: 'r', eventId: 'event' }])
      return Promise.resolve([recorded === null ? null : { eventId: 'event', receivedAt: clock, payload: recorded }])
    },
  }
  const sender: DeliverOptions['sender'] = {
    send({ body }) {
      sent.push(String(body))
      return Promise.resolve({ ok: true, status: 200 })
    },
  }
  const handler = deliverWebhooks({ storage, sender, pages, now: () => clock, random: () => 0 })
  const go = async (id: string) => postponed.push(...(await performed(handler, id)).map(([, dueAt]) => dueAt))
  await go('open-1')
  assert.deepEqual([sent.length, postponed], [0, [1_000_500]])
  await go('closed-1')
  assert.equal(sent.length, 1, 'a webhook that shows no input waits for none')
  const { id: approvalId, toolName, inputHash } = approval
  recorded = JSON.stringify({ approvalId, toolName, inputHash, input: { command: 'cat .env' } })
  await go('open-1')
  assert.ok(sent[1]?.includes('$ cat .env') && !sent[0]?.includes('cat .env'))
  assert.match(sent[1] ?? '', /this very call ran 0 ms ago under approval earlier, and returned/)
  recorded = null
  clock += 3_000
  await go('open-2')
  assert.equal(sent.length, 3)
})
