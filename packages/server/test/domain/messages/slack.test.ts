import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSignedBySlack, slackPressOf, slackSignatureOf } from '../../../src/domain/messages/slack.ts'

/** The example of https://docs.slack.dev/authentication/verifying-requests-from-slack */
const SECRET = '8f742231b10e8888abcd99yyyzzz85a5'
const HEADERS = {
  timestamp: '1531420618',
  signature: 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
}
const BODY = Buffer.from(
  'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
)
const THEN = Number(HEADERS.timestamp) * 1_000
const MINUTE = 60_000

test('the example of Slack is signed, and one changed byte of it is not', () => {
  const signature = slackSignatureOf(HEADERS, THEN)
  assert.ok(signature)
  assert.equal(isSignedBySlack(SECRET, signature, BODY), true)
  assert.equal(isSignedBySlack(`${SECRET.slice(0, -1)}6`, signature, BODY), false)
  assert.equal(isSignedBySlack(SECRET, { ...signature, timestamp: '1531420619' }, BODY), false)
  for (const at of [0, 100, BODY.length - 1]) {
    const changed = Buffer.from(BODY)
    changed[at] = (changed[at] ?? 0) ^ 1
    assert.equal(isSignedBySlack(SECRET, signature, changed), false, `byte ${at}`)
  }
})

test('a timestamp is valid for five minutes', () => {
  for (const age of [0, 5 * MINUTE, -5 * MINUTE]) assert.ok(slackSignatureOf(HEADERS, THEN + age))
  for (const age of [5 * MINUTE + 1, -5 * MINUTE - 1]) assert.equal(slackSignatureOf(HEADERS, THEN + age), null)
})

test('headers in another form are refused before anything is computed', () => {
  const { timestamp, signature } = HEADERS
  for (const wrong of [undefined, '', [signature, signature], signature.toUpperCase(), `${signature}0`, 'v0=é']) {
    assert.equal(slackSignatureOf({ timestamp, signature: wrong }, THEN), null)
  }
  for (const wrong of [undefined, '', '1e9', ' 1531420618', 'Infinity', '-1531420618']) {
    assert.equal(slackSignatureOf({ timestamp: wrong, signature }, THEN), null)
  }
})

/** The example of https://docs.slack.dev/reference/interaction-payloads/block_actions-payload, with our button. */
const RECORDED = {
  type: 'block_actions',
  team: { id: 'T9TK3CUKW', domain: 'example' },
  user: { id: 'UA8RXUSPL', username: 'jtorrance', name: 'jtorrance', team_id: 'T9TK3CUKW' },
  api_app_id: 'AABA1ABCD',
  token: '9s8d9as89d8as9d8as989',
  container: { type: 'message', message_ts: '1548261231.000200', channel_id: 'CBR2V3XEX', is_ephemeral: false },
  trigger_id: '12321423423.333649436676.d8c1bb837935619ccad0f624c448ffb3',
  channel: { id: 'CBR2V3XEX', name: 'review-updates' },
  message: { bot_id: 'BAH5CA16Z', type: 'message', text: 'This content cannot be displayed.', ts: '1548261231.000200' },
  response_url: 'https://hooks.slack.com/actions/AABA1ABCD/1232321423432/D09sSasdasdAS9091209',
  actions: [
    {
      action_id: 'tacho_approve',
      block_id: '=qXel',
      text: { type: 'plain_text', text: 'Approve', emoji: true },
      value: '0197B0A0-0000-7000-8000-000000000000',
      type: 'button',
      action_ts: '1548426417.840180',
    },
  ],
}
const bodyOf = (payload: unknown) =>
  Buffer.from(
    new URLSearchParams({ payload: typeof payload === 'string' ? payload : JSON.stringify(payload) }).toString(),
  )

test('a press says who pressed what', () => {
  assert.deepEqual(slackPressOf(bodyOf(RECORDED)), {
    teamId: 'T9TK3CUKW',
    teamName: 'example',
    userId: 'UA8RXUSPL',
    userName: 'jtorrance',
    approvalId: '0197b0a0-0000-7000-8000-000000000000',
    decision: 'APPROVED',
    responseUrl: RECORDED.response_url,
  })
  const ofOrganization = { ...RECORDED, team: null, enterprise: { id: 'E1', name: 'Example' } }
  assert.deepEqual(slackPressOf(bodyOf(ofOrganization))?.teamId, 'E1')
})

test('other requests of Slack press nothing', () => {
  const [action] = RECORDED.actions
  const others = [
    {},
    null,
    'no JSON',
    '['.repeat(100_000),
    { ...RECORDED, type: 'view_submission' },
    { ...RECORDED, actions: [] },
    { ...RECORDED, actions: [{ ...action, action_id: 'constructor' }] },
    { ...RECORDED, actions: [{ ...action, value: 7 }] },
    { ...RECORDED, team: null },
    { ...RECORDED, user: { id: 'U\u0000' } },
    { ...RECORDED, user: { id: 'U'.repeat(65) } },
  ]
  for (const other of others) assert.equal(slackPressOf(bodyOf(other)), null)
  assert.equal(slackPressOf(BODY), null)
  assert.equal(slackPressOf(Buffer.from([0xff, 0xfe])), null)
})
