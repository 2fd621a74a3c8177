import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { newWebhookSecret, nextAttemptAt, webhookMessage } from '../../src/domain/webhook.ts'
import type { DeliveryOrder } from '../../src/storage/webhooks.ts'

const NOW = 1_800_000_000_123

function order(given: Partial<DeliveryOrder['webhook']> = {}, data: object = { approvalId: 'a' }): DeliveryOrder {
  return {
    webhook: {
      id: 'w',
      environmentId: 'e',
      url: 'https://example.com',
      description: '',
      format: 'standard',
      events: [],
      secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      previousSecret: null,
      previousUntil: null,
      createdAt: 0,
      disabledAt: null,
      disabledReason: null,
      droppedDeliveries: 0,
      ...given,
    },
    delivery: {
      id: 'msg_1',
      type: 'approval.requested',
      status: 'PENDING',
      attempts: 0,
      createdAt: 0,
      lastAttemptAt: null,
      nextAttemptAt: 0,
      responseStatus: null,
      error: null,
      data: JSON.stringify(data),
    },
  }
}

/** Verifies the way the specification requires of receivers. */
function verifies(secret: string, { headers, body }: ReturnType<typeof webhookMessage>): boolean {
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
  const expected = createHmac('sha256', Buffer.from(secret.split('_')[1] ?? '', 'base64'))
    .update(signed)
    .digest('base64')
  return (headers['webhook-signature'] ?? '').split(' ').includes(`v1,${expected}`)
}

test('a message is signed as Standard Webhooks requires', () => {
  const message = webhookMessage(order(), NOW)
  assert.ok(verifies('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', message))
  assert.ok(
    !verifies(
      newWebhookSecret((size) => new Uint8Array(size)),
      message,
    ),
  )
  assert.equal(message.headers['webhook-timestamp'], '1800000000')
  assert.deepEqual(JSON.parse(message.body), {
    type: 'approval.requested',
    timestamp: '1970-01-01T00:00:00.000Z',
    data: { approvalId: 'a' },
  })
})

test('after a rotation both secrets sign, until the old one expires', () => {
  const rotated = { secret: 'whsec_bmV3', previousSecret: 'whsec_b2xk', previousUntil: NOW + 1 }
  const during = webhookMessage(order(rotated), NOW)
  assert.ok(verifies('whsec_bmV3', during) && verifies('whsec_b2xk', during))
  const later = webhookMessage(order(rotated), NOW + 1)
  assert.ok(verifies('whsec_bmV3', later) && !verifies('whsec_b2xk', later))
})

test('a Slack message names what it is about and cannot mention anyone', () => {
  const data = { toolName: '<!channel>', reason: 'a & b', agentId: null, status: 'PENDING', inputHash: 'x' }
  const { body } = webhookMessage(order({ format: 'slack' }, data), NOW)
  const message = JSON.parse(body) as { text: string; blocks: { type: string }[] }
  assert.equal(message.text, 'Approval requested: a &amp; b')
  assert.deepEqual(
    message.blocks.map(({ type }) => type),
    ['header', 'section', 'section'],
  )
  assert.ok(body.includes('&lt;!channel&gt;') && !body.includes('<!channel>') && !body.includes('null'))
})

test('a message to Slack names the agent, with its id behind it', () => {
  const data = { agentId: 'bot-7', agentName: 'Support bot <1>' }
  const { body } = webhookMessage(order({ format: 'slack' }, data), NOW)
  assert.ok(body.includes('*Agent*\\nSupport bot &lt;1&gt; (bot-7)'), body)
})

test('a message to Slack shows the amounts of a budget in dollars, and percent as they are', () => {
  const textOf = (data: object) => webhookMessage(order({ format: 'slack' }, data), NOW).body
  assert.match(
    textOf({ kind: 'budget', value: 10.9625, threshold: 20 }),
    /\*Value\*\\n\$10\.96.*\*Threshold\*\\n\$20\.00/,
  )
  assert.match(textOf({ kind: 'error_rate', value: 12.5, threshold: 10 }), /\*Value\*\\n12\.5.*\*Threshold\*\\n10"/)
})

test('attempts continue for about a day with growing delays, then end', () => {
  let [attempts, at] = [0, 0]
  const delays: number[] = []
  for (;;) {
    const next = nextAttemptAt(++attempts, at, 0.5)
    if (next === null) break
    delays.push(next - at)
    at = next
  }
  assert.ok(at > 20 * 3_600_000 && at < 30 * 3_600_000)
  assert.deepEqual(
    delays,
    delays.toSorted((a, b) => a - b),
  )
  assert.ok((nextAttemptAt(1, 0, 0) ?? 0) < (nextAttemptAt(1, 0, 1) ?? 0))
})
