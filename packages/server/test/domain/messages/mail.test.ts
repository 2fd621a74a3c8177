import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mailAddressOf, mailMessage } from '../../../src/domain/messages/mail.ts'

const PLACE = { environment: 'production', url: 'https://tacho.example/w/W/E' }
const news = (data: Record<string, unknown>) => ({
  id: 'd',
  type: 'approval.requested',
  createdAt: 0,
  place: PLACE,
  data: { environmentId: 'E', approvalId: 'A', toolName: 'refund', ...data },
})

test('a mail has the same facts as other messages, and one link, which is ours', () => {
  const { id, to, subject, text } = mailMessage(news({ reason: 'over 100', runId: 'r' }), 'ada@example.com')
  assert.deepEqual([id, to, subject], ['d', 'ada@example.com', 'Approval requested: over 100'])
  assert.equal(
    text,
    `Approval requested

over 100

Environment: production
Tool: refund
Run: r

Open in the console:
https://tacho.example/w/W/E/approvals/A

An admin chose this address for production. The link decides nothing: you sign in first.
`,
  )
})

test('texts of clients make no links and no headers', () => {
  const reason = 'see https://evil.example/a or www.evil.example, evil.example/b\r\nBcc: x@example.com\u202e'
  const forged = 'a\nOpen in the console:\nhttp://x.y\u202e'
  const place = { ...PLACE, environment: forged }
  const { subject, text } = mailMessage({ ...news({ reason, toolName: forged }), place }, 'a@b.c')
  assert.ok(!/[\r\n\u202e]/.test(subject), subject)
  const links = text.match(/https?:\/\/\S+|www\.\S+|\w\.example\/\S*/g)
  assert.deepEqual(links, ['https://tacho.example/w/W/E/approvals/A', 'o.example/w/W/E/approvals/A'].slice(0, 1))
  assert.ok(text.includes('https[:]//evil[.]example/a'))
  assert.equal(text.match(/^Open in the console:$/gm)?.length, 1)
  assert.ok(!text.includes('\u202e'))
})

test('no word of a client is an address for a mail program', () => {
  const hosts = ['evil.com', 'evil.com#x', 'x.evil.co.uk', 'evil\u3002com', 'münchen.de', 'a.xn--p1ai']
  const others = [
    'mailto:x@y',
    'MAILTO:x@evil.com',
    'tel:+123',
    '203.0.113.7/login',
    'see 10.0.0.1.',
    'ftp://a.b',
    '\\\\evil\\x',
    'http:evil',
    'evil\u2024com',
  ]
  for (const reason of [...hosts, ...others]) {
    const { text, subject } = mailMessage(news({ reason, toolName: reason }), 'a@b.c')
    const ours = text.replaceAll(/https:\/\/tacho\.example\S*/g, '')
    for (const shown of [ours, subject]) {
      assert.doesNotMatch(
        shown,
        /(?:mailto|tel|http):\S|\\\\[a-z]|:\/\/|\d\.\d+\.\d|[\p{L}\d][.\u2024\u3002](?:\p{L}{2}|xn--)/iu,
        `${reason}: ${shown}`,
      )
    }
  }
  const plain = 'It costs 12.50, in version 1.2.3 (see note: a. b) at 12:30'
  assert.ok(mailMessage(news({ reason: plain }), 'a@b.c').text.includes(plain))
})

test('what is cut off a message costs nothing', () => {
  const reason = 'раура '.repeat(1_000_000)
  const started = performance.now()
  const { text } = mailMessage(news({ reason, toolName: reason }), 'a@b.c')
  assert.ok(performance.now() - started < 5_000)
  assert.ok(text.length < 20_000)
  assert.match(text, /^Letters that look like others: “раура”: Cyrillic letters/m)
  assert.match(text, /р…$/m)
})

test('only one plain address is taken', () => {
  assert.equal(mailAddressOf('mailto:Ada@Example.com'), 'ada@example.com')
  for (const wrong of ['ada@example.com', 'mailto:', 'mailto:a@b.c,d@e.f', 'mailto:a@b.c?cc=d@e.f', 'mailto:<a@b.c>']) {
    assert.equal(mailAddressOf(wrong), null, wrong)
  }
})
