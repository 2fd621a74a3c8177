/** Checks of requests from Slack: signature, size, rate, and the address that gets the answer. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { CreatedWebhook } from '@tacho/contract/messages/webhook.ts'
import type { Answer } from '../../setup/service.ts'
import { SECRET, slackService } from '../../setup/slack-service.ts'

const {
  service,
  webhook,
  workspace,
  at,
  home,
  newWebhook,
  press,
  payloadOf,
  post,
  postOnce,
  newApproval,
  stateOf,
  newLinkedPerson,
} = slackService()

test('the signing secret is taken for Slack only, and no reply and no audit entry shows it', async () => {
  const wrong = await service.operator(`${home()}/webhooks`, { body: { url: at('/x'), signingSecret: SECRET } })
  assert.deepEqual([wrong.status, wrong.text.includes('format slack')], [400, true])
  const short = { url: at('/x'), format: 'slack', signingSecret: 'short' }
  assert.equal((await service.operator(`${home()}/webhooks`, { body: short })).status, 400)
  const plain = await newWebhook('/services/plain', { signingSecret: undefined, events: ['run.failed'] })
  assert.equal(plain.interactionsUrl, null)
  const changed = await service.operator<CreatedWebhook>(`${home()}/webhooks/${plain.id}/change`, {
    body: { signingSecret: SECRET },
  })
  assert.ok(changed.body.interactionsUrl?.endsWith(`/slack/interactions/${service.environmentId}/${plain.id}`))
  const listed = await service.operator(`${home()}/webhooks`)
  const audit = await service.operator(`/workspaces/${workspace.id}/audit`)
  for (const { text: shown } of [changed, listed, audit]) assert.ok(!shown.includes(SECRET))
  assert.ok(audit.text.includes('"signingSecret":"set"'))
  const { body } = await service.operator<CreatedWebhook>(`${home()}/webhooks/${plain.id}/change`, {
    body: { signingSecret: null },
  })
  assert.equal(body.interactionsUrl, null)
  const { id } = await newApproval()
  assert.equal((await post(payloadOf(id, {}), { to: changed.body })).status, 401)
})

test('requests that this webhook’s app did not sign are refused alike, whatever is wrong', async () => {
  const { id } = await newApproval()
  const other = await service.newTenant('other tenant')
  const theirs = await newWebhook('/services/other', { signingSecret: 'f'.repeat(32) }, other.environmentId)
  const off = await newWebhook('/services/off', { events: ['run.failed'] })
  await service.operator(`${home()}/webhooks/${off.id}/change`, { body: { enabled: false } })
  const path = `/slack/interactions/${service.environmentId}`
  const payload = payloadOf(id, {})
  const refused = [
    await post(payload, { secret: 'e'.repeat(32) }),
    await post(payload, { ageMs: 301_000 }),
    await post(payload, { ageMs: -301_000 }),
    await post(payload, { to: theirs }),
    await post(payload, { to: off }),
    await post(payload, { to: { id: '', interactionsUrl: `http://x${path}/${theirs.id}` } }),
    await post(payload, { to: { id: '', interactionsUrl: `http://x${path}/no-id` } }),
    await service.call(`${path}/${webhook.id}`, { body: 'payload={}' }),
    await service.call(`${path}/${webhook.id}`, { body: '{}', headers: { 'content-type': 'application/json' } }),
  ]
  const texts = refused.map(({ text: shown }) => shown.replace(/"requestId":"[^"]+"/, ''))
  assert.deepEqual([...new Set(refused.map(({ status }) => status))], [401])
  assert.equal(new Set(texts).size, 1, texts.join('\n'))
  assert.equal((await stateOf(id)).status, 'PENDING')
})

test('a body over the limit is refused before its signature is computed', async () => {
  const headers = {
    'content-type': 'application/x-www-form-urlencoded',
    'x-slack-request-timestamp': String(Math.floor(Date.now() / 1_000)),
    'x-slack-signature': `v0=${'0'.repeat(64)}`,
  }
  const path = new URL(webhook.interactionsUrl ?? '').pathname
  const large = await service.call(path, { body: 'x'.repeat(LIMITS.slackBodyBytes + 1), headers })
  assert.equal(large.status, 413)
  assert.equal((await service.call(path, { body: 'x'.repeat(LIMITS.slackBodyBytes), headers })).status, 401)
})

test('Slack is answered only where the webhook sends its messages', async () => {
  const lee = await newLinkedPerson('lee')
  const { id } = await newApproval()
  const elsewhere = createServer((_, response) => response.end()).listen(0, '127.0.0.1')
  await once(elsewhere, 'listening')
  let called = false
  elsewhere.on('request', () => (called = true))
  const responseUrl = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/`
  for (const address of [responseUrl, 'no address', 'file:///etc/passwd']) {
    assert.equal((await post(payloadOf(id, { user: lee.user, responseUrl: address }))).status, 200)
  }
  // The decision is stored although the message could not be updated. The next press updates it.
  assert.equal((await stateOf(id)).status, 'APPROVED')
  const [replaced] = await press(id, { user: lee.user })
  assert.ok(JSON.stringify(replaced).includes('APPROVED'))
  assert.equal(called, false)
  elsewhere.close()
})

test('a webhook takes presses up to its rate, and tells one over it when to come again', async () => {
  const to = await newWebhook('/services/busy')
  const pressed = (count: number) =>
    Promise.all(Array.from({ length: count }, () => postOnce(payloadOf(randomUUID(), {}), { to })))
  for (const { status } of await pressed(LIMITS.slackRequestsPerSecond)) assert.equal(status, 200)
  // Try several rounds: on a slow machine, one takes more than a second, and then the limit's window begins again.
  let refused: Answer | undefined
  for (let round = 0; !refused && round < 20; round++) {
    refused = (await pressed(LIMITS.slackRequestsPerSecond + 1)).find(({ status }) => status !== 200)
  }
  assert.equal(refused?.status, 429)
  assert.equal(refused.headers.get('retry-after'), '1')
})

test('a workspace whose answers are never taken does not block the answers of other workspaces', async () => {
  const silent = createTcpServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const nowhere = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`
  const { environmentId } = await service.newTenant('silent')
  for (let hooks = 0; hooks < 11; hooks++) {
    const to = await newWebhook('', { url: nowhere }, environmentId)
    const pressed = Array.from({ length: LIMITS.slackRequestsPerSecond }, (_, index) =>
      post(payloadOf(randomUUID(), { user: `U${index}`, responseUrl: nowhere }), { to }),
    )
    for (const reply of await Promise.all(pressed)) assert.equal(reply.status, 200)
  }
  const { id } = await newApproval()
  assert.equal((await press(id, { user: 'U-neighbour' })).length, 1)
  silent.close()
})
