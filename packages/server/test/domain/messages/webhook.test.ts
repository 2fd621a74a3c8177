import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { mailMessage } from '../../../src/domain/messages/mail.ts'
import {
  inputWanted,
  newsOf,
  type ShownOfInput,
  newWebhookSecret,
  nextAttemptAt,
  webhookMessage,
} from '../../../src/domain/messages/webhook.ts'
import { addressFault } from '../../../src/domain/messages/webhook-formats.ts'
import type { DeliveryOrder } from '../../../src/storage/messages/messages.ts'

const NOW = 1_800_000_000_123
const PLACE = { environment: 'production', url: 'https://tacho.example/w/1/2' }

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
      signingSecret: null,
      showsInput: false,
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

/** Verifies the signature as the specification requires of receivers. */
function verifies(secret: string, { headers, body }: ReturnType<typeof webhookMessage>): boolean {
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
  const expected = createHmac('sha256', Buffer.from(secret.split('_')[1] ?? '', 'base64'))
    .update(signed)
    .digest('base64')
  return (headers['webhook-signature'] ?? '').split(' ').includes(`v1,${expected}`)
}

test('a message is signed as Standard Webhooks requires', () => {
  const message = webhookMessage(order(), PLACE, NOW)
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
    data: { approvalId: 'a', url: 'https://tacho.example/w/1/2/approvals/a' },
  })
})

test('after a rotation both secrets sign, until the old one expires', () => {
  const rotated = { secret: 'whsec_bmV3', previousSecret: 'whsec_b2xk', previousUntil: NOW + 1 }
  const during = webhookMessage(order(rotated), PLACE, NOW)
  assert.ok(verifies('whsec_bmV3', during) && verifies('whsec_b2xk', during))
  const later = webhookMessage(order(rotated), PLACE, NOW + 1)
  assert.ok(verifies('whsec_bmV3', later) && !verifies('whsec_b2xk', later))
})

test('a Slack message names what it is about and cannot mention anyone', () => {
  const data = { toolName: '<!channel>', reason: 'a & b', agentId: null, status: 'PENDING', inputHash: 'x' }
  const { body } = webhookMessage(order({ format: 'slack' }, data), PLACE, NOW)
  const message = JSON.parse(body) as { text: string; blocks: { type: string }[] }
  assert.equal(message.text, 'Approval requested: a &amp; b')
  assert.deepEqual(
    message.blocks.map(({ type }) => type),
    ['header', 'section', 'section'],
  )
  assert.ok(body.includes('*Environment*\\nproduction') && !body.includes('"verbatim":false'))
  assert.ok(body.includes('&lt;!channel&gt;') && !body.includes('<!channel>') && !body.includes('null'))
})

test('a message to Slack names the agent, with its id behind it', () => {
  const data = { agentId: 'bot-7', agentName: 'Support bot <1>' }
  const { body } = webhookMessage(order({ format: 'slack' }, data), PLACE, NOW)
  assert.ok(body.includes('*Agent*\\nSupport bot &lt;1&gt; (bot-7)'), body)
})

test('a message to Slack shows the amounts of a budget in dollars, and percent as they are', () => {
  const textOf = (data: object) => webhookMessage(order({ format: 'slack' }, data), PLACE, NOW).body
  assert.match(
    textOf({ kind: 'budget', value: 10.9625, threshold: 20 }),
    /\*Value\*\\n\$10\.96.*\*Threshold\*\\n\$20\.00/,
  )
  assert.match(textOf({ kind: 'error_rate', value: 12.5, threshold: 10 }), /\*Value\*\\n12\.5.*\*Threshold\*\\n10"/)
})

const HARM = { toolName: 'r\u0435fund', reason: 'a\u202e [b](https://evil.example) <!here>', agentName: 'Bot' }

interface SlackText {
  type: string
  text: string
  emoji?: boolean
  verbatim?: boolean
}

interface SlackBlock {
  text?: SlackText
  fields?: SlackText[]
}

/** The body and the address of a message about a waiting approval. */
function told(format: 'slack' | 'teams' | 'pagerduty', data: object, type = 'approval.requested') {
  const url =
    format === 'pagerduty' ? 'https://events.pagerduty.com/v2/enqueue?routing_key=R0' : 'https://example.com/x'
  const { webhook, delivery } = order({ format, url }, data)
  const message = webhookMessage({ webhook, delivery: { ...delivery, type } }, PLACE, NOW)
  return { url: message.url, text: message.body, body: JSON.parse(message.body) as Record<string, unknown> }
}

test('texts of clients stay text in every service, and say what does not show', () => {
  for (const format of ['slack', 'teams', 'pagerduty'] as const) {
    const { text } = told(format, { approvalId: 'a', agentId: 'bot', ...HARM })
    assert.ok(text.includes('a\\\\u202e') && !text.includes('\u202e'), format)
    assert.ok(text.includes('Latin letters mixed with Cyrillic'), format)
    assert.ok(text.includes('https://tacho.example/w/1/2/approvals/a'), format)
    assert.ok(text.includes('production'), format)
  }
  assert.ok(!told('slack', HARM).text.includes('<!here>'))
})

test('words of clients are neither markup nor addresses in Slack and Teams', () => {
  const harm = '*Approved* by `admin`, see evil.example or 203.0.113.7/login :lock:'
  const data = { approvalId: 'a', agentId: 'bot', toolName: '_refund_', reason: harm }
  const { body } = told('slack', data)
  const { text, mrkdwn, blocks } = body as { text: string; mrkdwn: boolean; blocks: SlackBlock[] }
  assert.deepEqual([mrkdwn, /evil\.example|203\.0/.test(text)], [false, false])
  const texts = blocks.flatMap(({ text: one, fields = [] }) => [...(one ? [one] : []), ...fields])
  const [about, tool] = [harm, '_refund_'].map((word) => texts.find((one) => one.text.includes(word.slice(0, 8))))
  assert.deepEqual([about?.type, about?.emoji, tool?.type], ['plain_text', false, 'plain_text'])
  assert.ok(about?.text.includes('evil[.]example') && about.text.includes('203[.]0[.]113[.]7'))
  for (const { type, text: one, verbatim } of texts) if (type === 'mrkdwn') assert.equal(verbatim, true, one)
  assert.doesNotMatch(told('teams', data).text, /evil\.example|203\.0\.113/)
  const plain = told('slack', { approvalId: 'a', agentId: 'a_b', toolName: 'get_order*2', reason: 'a - b' }).text
  assert.ok(plain.includes('*Tool*\\nget_order*2'), 'no markup inside a word')
})

test('a withdrawn request says so, has no buttons, and ends the incident', () => {
  const data = {
    approvalId: 'a',
    toolName: 'refund',
    withdrawnAt: '2026-01-01T00:00:00.000Z',
    withdrawnReason: 'timeout',
  }
  const withdrawn = told('pagerduty', data, 'approval.withdrawn').body
  assert.deepEqual([withdrawn['event_action'], withdrawn['dedup_key']], ['resolve', 'tacho:a'])
  const given = order({ format: 'slack', signingSecret: 'secret' }, data)
  const asked = { webhook: given.webhook, delivery: { ...given.delivery, type: 'approval.requested' } }
  const message = webhookMessage(asked, PLACE, NOW).body
  assert.ok(message.includes('the caller did not wait longer; nothing will run'), message)
  assert.ok(!message.includes('tacho_approve'))
})

test('a card for Teams has the shape that its workflows take, and no markup of clients', () => {
  const { body, text } = told('teams', { approvalId: 'a', ...HARM, reason: 'x'.repeat(60_000) })
  const [attachment] = body['attachments'] as { contentType: string; content: { type: string; body: object[] } }[]
  assert.deepEqual(
    [body['type'], attachment?.contentType, attachment?.content.type],
    ['message', 'application/vnd.microsoft.card.adaptive', 'AdaptiveCard'],
  )
  for (const block of attachment?.content.body ?? []) assert.equal('type' in block && block.type, 'RichTextBlock')
  assert.ok(text.length < 28 * 1024, `${text.length}`)
})

test('an event for PagerDuty has its key in the body, and ends what an earlier one began', () => {
  const asked = told('pagerduty', { approvalId: 'a', ...HARM, reason: 'x'.repeat(60_000) })
  assert.equal(asked.url, 'https://events.pagerduty.com/v2/enqueue')
  const { routing_key: key, event_action: action, dedup_key: dedup, payload } = asked.body
  assert.deepEqual([key, action, dedup], ['R0', 'trigger', 'tacho:a'])
  const { summary, source, severity, timestamp } = payload as Record<string, string>
  assert.deepEqual([summary?.length, source, severity], [1_024, 'tacho, production', 'warning'])
  assert.equal(new Date(timestamp ?? '').toISOString(), timestamp)
  const decided = told('pagerduty', { approvalId: 'a' }, 'approval.decided').body
  assert.deepEqual([decided['event_action'], decided['dedup_key']], ['resolve', 'tacho:a'])
  const dedupOf = (data: object, type: string) => told('pagerduty', data, type).body['dedup_key']
  const alert = { alertId: 'l', kind: 'error_rate' }
  assert.equal(dedupOf(alert, 'alert.firing'), dedupOf(alert, 'alert.resolved'))
  const budget = (percent: number) => dedupOf({ alertId: 'l', kind: 'budget', percent }, 'budget.reached')
  assert.notEqual(budget(50), budget(80))
  assert.equal(dedupOf({ id: 'run', runStatus: 'FAILED' }, 'run.failed'), 'tacho:run')
  assert.equal(dedupOf({}, 'webhook.test'), 'tacho:msg_1')
  assert.equal(addressFault('pagerduty', 'https://events.pagerduty.com/v2/enqueue')?.includes('routing_key'), true)
  assert.equal(addressFault('pagerduty', asked.url + '?routing_key=R0'), null)
  assert.equal(addressFault('slack', 'https://example.com'), null)
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

test('a message has the beginning of the input only if its webhook shows it, and as text in every service', () => {
  const asked = { approvalId: 'a', toolName: 'Bash', inputHash: 'ab', runId: 'r' }
  const check = { result: 'does_not_match', reason: null, sealed: 0 } as const
  const text = `$ curl <https://evil.example|x> @here ${String.fromCodePoint(0x202e)}`
  const sentence: ShownOfInput['sentence'] = [
    { kind: 'words', text: 'Refund ' },
    { kind: 'amount', text: '917 EUR' },
    { kind: 'value', text: ` · <!here> https://evil.example ${String.fromCodePoint(0x202e)}` },
  ]
  const input = { text, check, sentence }
  for (const format of ['slack', 'teams'] as const) {
    const given = order({ format, showsInput: true }, asked)
    assert.doesNotMatch(webhookMessage(given, PLACE, NOW).body, /curl/)
    const { body } = webhookMessage(given, PLACE, NOW, input)
    assert.match(body, /curl/)
    assert.match(body, /DOES NOT MATCH/)
    assert.ok(!body.includes(String.fromCodePoint(0x202e)), format)
    assert.match(body, /Approval requested: Refund 917 EUR · .{0,20}https\[:\]..evil\[[.]\]example/)
    if (format === 'slack') assert.match(body, /&lt;https:..evil/)
    assert.ok(!body.includes('<!here>') || format !== 'slack')
  }
  const mail = newsOf(order({ format: 'mail', showsInput: true }, asked), PLACE, input)
  const { text: mailText, subject } = mailMessage(mail, 'a@example.com')
  assert.match(subject, /^Approval requested: Refund 917 EUR · /)
  assert.ok(!subject.includes('https://evil') && !mailText.includes('https://evil'))
  assert.match(mailText, /Input, masked by the client: \$ curl <https\[:\]..evil/)
  const matching = { ...input, check: { ...check, result: 'matches' as const } }
  const buttons = webhookMessage(
    order({ format: 'slack', showsInput: true, signingSecret: 's' }, asked),
    PLACE,
    NOW,
    matching,
  )
  assert.match(buttons.body, /"text":"Approve 917 EUR"/)
  assert.match(buttons.body, /"text":"Approve 917 EUR\?"/)
  const wanted = (given: Partial<DeliveryOrder['webhook']>, data: object = asked) =>
    inputWanted(order({ format: 'slack', showsInput: true, ...given }, data))
  assert.equal(wanted({}), asked.approvalId)
  assert.equal(wanted({ showsInput: false }), null)
  assert.equal(wanted({ format: 'standard' }), null, 'messages for programs never have inputs')
  assert.equal(wanted({}, { ...asked, runId: null }), null)
})
