import assert from 'node:assert/strict'
import { createECDH } from 'node:crypto'
import { test } from 'node:test'
import type { QuietHours } from '@tacho/contract/messages/notification.ts'
import {
  bySeverity,
  choose,
  endpointFault,
  isPublicKey,
  isTimeZone,
  newPushKey,
  notificationText,
  pushKeysOf,
  quietEnd,
  toNotice,
  type Notice,
} from '../../../src/domain/messages/notification.ts'
import { firstState } from '../../../src/domain/messages/alert.ts'
import type { AlertRow, NoticeRow } from '../../../src/storage/messages/messages.ts'
import { decryptPush } from '../../setup/push-service.ts'

const time = (text: string) => Date.parse(text)
const NIGHT: QuietHours = { fromMinute: 22 * 60, toMinute: 7 * 60, timeZone: 'Europe/Berlin', exceptCritical: false }

function noticeRow(given: Partial<NoticeRow> = {}): NoticeRow {
  return { id: 'a', at: 1, until: null, isCurrent: true, policySeverity: null, alert: null, data: {}, ...given }
}

function alertRow(rule: Partial<AlertRow['rule']>, percentTold = 0): AlertRow {
  const some = { name: 'Costs', threshold: 1, agentId: null, windowMinutes: 5, holdMinutes: 0, period: 'day' } as const
  const state = { ...firstState(0), percentTold, value: 0.9 }
  return { id: 'a', environmentId: 'e', rule: { ...some, kind: 'cost', ...rule }, state, checkedAt: 0, createdAt: 0 }
}

const notice = (given: Partial<Notice> = {}): Notice => ({ ...noticeRow(), severity: 'MEDIUM', ...given })

test('quiet hours end at their minute in their zone, over midnight and when the clocks change', () => {
  for (const [now, end] of [
    ['2026-06-10T19:59:59.999Z', null],
    ['2026-06-10T20:00:00.000Z', '2026-06-11T05:00:00.000Z'],
    ['2026-06-11T04:59:59.999Z', '2026-06-11T05:00:00.000Z'],
    ['2026-06-11T05:00:00.000Z', null],
    ['2026-12-10T20:30:00.000Z', null],
    ['2026-12-10T21:30:00.000Z', '2026-12-11T06:00:00.000Z'],
    // Summer time begins and ends in these nights.
    ['2026-03-28T23:00:00.000Z', '2026-03-29T05:00:00.000Z'],
    ['2026-10-24T21:00:00.000Z', '2026-10-25T06:00:00.000Z'],
  ] as const) {
    assert.equal(quietEnd(NIGHT, time(now)), end === null ? null : time(end), now)
  }
  const lunch = { ...NIGHT, fromMinute: 12 * 60, toMinute: 13 * 60, timeZone: 'Asia/Kolkata' }
  assert.equal(quietEnd(lunch, time('2026-06-10T06:29:59.999Z')), null)
  assert.equal(quietEnd(lunch, time('2026-06-10T06:30:00.000Z')), time('2026-06-10T07:30:00.000Z'))
})

test('a browser is told the most severe that its person wants, now or when quiet hours end', () => {
  const now = time('2026-06-10T20:00:00.000Z')
  const end = time('2026-06-11T05:00:00.000Z')
  const short = notice({ id: 'short', severity: 'CRITICAL', until: end })
  const long = notice({ id: 'long', severity: 'HIGH', until: end + 1 })
  const low = notice({ id: 'low', severity: 'LOW' })
  const newer = notice({ id: 'newer', severity: 'LOW', at: 2 })
  const all = [low, newer, long, short].toSorted(bySeverity)
  assert.deepEqual(
    all.map(({ id }) => id),
    ['short', 'long', 'newer', 'low'],
  )
  const told = (wish: Partial<Parameters<typeof choose>[2]>, notices = all) => {
    const chosen = choose(
      'approval.requested',
      notices,
      { kinds: ['approvals'], severity: 'LOW', quietHours: null, ...wish },
      now,
    )
    return chosen && [chosen.notice.id, chosen.at]
  }
  assert.deepEqual(told({}), ['short', now])
  assert.deepEqual(told({ kinds: ['alerts', 'issues'] }), null)
  assert.deepEqual(told({ severity: 'HIGH' }, [low, newer]), null)
  assert.deepEqual(told({ severity: 'LOW' }, [newer, low]), ['newer', now])
  assert.deepEqual(told({ quietHours: NIGHT }), ['long', end])
  assert.deepEqual(told({ quietHours: NIGHT }, [short]), null)
  assert.deepEqual(told({ quietHours: { ...NIGHT, exceptCritical: true } }), ['short', now])
  assert.deepEqual(told({ quietHours: { ...NIGHT, exceptCritical: true } }, [long]), ['long', end])
})

test('severity comes from the policy, the kind of the alert, the step of the budget or the event', () => {
  const severity = (event: Parameters<typeof toNotice>[0], row: Partial<NoticeRow>) =>
    toNotice(event, noticeRow(row)).severity
  assert.equal(severity('approval.requested', {}), 'MEDIUM')
  assert.equal(severity('approval.requested', { policySeverity: 'CRITICAL' }), 'CRITICAL')
  assert.equal(severity('issue.opened', {}), 'MEDIUM')
  assert.equal(severity('issue.regressed', {}), 'HIGH')
  assert.equal(severity('alert.firing', { alert: alertRow({ kind: 'error_rate' }) }), 'HIGH')
  assert.equal(severity('alert.firing', { alert: alertRow({ kind: 'incomplete_runs' }) }), 'LOW')
  for (const [percent, expected] of [
    [50, 'MEDIUM'],
    [80, 'HIGH'],
    [100, 'CRITICAL'],
  ] as const) {
    assert.equal(severity('budget.reached', { alert: alertRow({ kind: 'budget' }, percent) }), expected)
  }
})

test('a notification says what it is about now, in one bounded text', () => {
  const place = { environment: 'prod\u202E', url: '/w/1/2' }
  const data = {
    approvalId: 'a',
    status: 'PENDING',
    toolName: 'x'.repeat(500),
    reason: 'r'.repeat(500),
    agentId: 'bot',
  }
  const waiting = notificationText('approval.requested', noticeRow({ data }), place, 3)
  assert.equal(waiting.title.length, 120)
  const [reason = '', where, others] = waiting.body.split('\n')
  assert.deepEqual([reason.length, where, others], [200, 'bot · prod\\u202e', '2 more wait'])
  assert.equal(waiting.path, '/w/1/2/approvals/a')
  const expired = noticeRow({ data: { ...data, status: 'EXPIRED' }, isCurrent: false })
  assert.match(notificationText('approval.requested', expired, place, 3).title, /^Approval expired undecided: /)
  const decided = noticeRow({ data: { ...data, status: 'APPROVED' }, isCurrent: false })
  assert.match(notificationText('approval.requested', decided, place, 0).body, /APPROVED · bot/)
  const over = noticeRow({ alert: alertRow({}), isCurrent: false })
  assert.equal(notificationText('alert.firing', over, place, 0).title, 'Resolved: Costs')
  const budget = noticeRow({ alert: alertRow({ kind: 'budget' }, 80) })
  assert.deepEqual(notificationText('budget.reached', budget, place, 0), {
    title: 'Budget: Costs',
    body: '80 % of $1.00\nprod\\u202e',
    path: '/w/1/2/alerts',
  })
  const row = alertRow({ kind: 'budget' }, 80)
  const partly = noticeRow({ alert: { ...row, state: { ...row.state, unpricedCalls: 3 } } })
  assert.match(notificationText('budget.reached', partly, place, 0).body, /^at least 80 % of \$1.00\n/)
})

test('time zones, addresses and keys', () => {
  for (const name of ['UTC', 'Europe/Berlin', 'Asia/Calcutta']) assert.ok(isTimeZone(name), name)
  for (const name of ['', '+01:00', 'Europe', 'Europe/Atlantis', 'constructor']) assert.ok(!isTimeZone(name), name)
  for (const address of ['https://a.example/x', 'http://127.0.0.1:1/', 'http://[::1]/']) {
    assert.equal(endpointFault(address), null, address)
  }
  const wrong = ['x', 'http://a.example/', 'http://127.example.com/', 'ftp://127.0.0.1/', 'http://10.0.0.1/']
  // The signing library would take a.example for the host.
  for (const address of [...wrong, 'https://a.example;.b.example/']) {
    assert.ok(endpointFault(address), address)
  }
  const stored = newPushKey()
  assert.match(stored, /^[0-9a-f]{64}$/)
  const { publicKey, privateKey } = pushKeysOf(stored)
  assert.ok(isPublicKey(publicKey))
  assert.equal(Buffer.from(privateKey, 'base64url').length, 32)
  assert.equal(pushKeysOf(`${'0'.repeat(63)}1`).publicKey, generator())
  for (const key of ['A'.repeat(87), privateKey]) assert.ok(!isPublicKey(key), key)
})

function generator(): string {
  const pair = createECDH('prime256v1')
  pair.setPrivateKey('01', 'hex')
  return pair.getPublicKey('base64url')
}

test('the push service of the tests decrypts the example of RFC 8291', () => {
  const pair = createECDH('prime256v1')
  pair.setPrivateKey('q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94', 'base64url')
  const message =
    'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN'
  const secret = Buffer.from('BTBZMqHH6r4Tts7J_aSIgg', 'base64url')
  assert.equal(
    decryptPush(Buffer.from(message, 'base64url'), pair, secret),
    'When I grow up, I want to be a watermelon',
  )
})
