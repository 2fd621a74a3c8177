import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { text } from 'node:stream/consumers'
import type { CreatedWebhook, Delivery, DeliveryPage, Webhook } from '@tacho/contract/messages/webhook.ts'
import { WEBHOOK_MESSAGES } from '@tacho/contract/messages/webhook-message.ts'
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { eventually } from '../../setup/eventually.ts'
import { issueRecord, openedIssue } from '../../setup/issue-service.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { refusalOf } from '../web/contract.ts'

interface Received {
  path: string
  headers: Record<string, string>
  body: { type: string; data: Record<string, unknown> }
}

let service: Service
let receiver: Server
const received: Received[] = []
/** Differences of messages from the contract's schema. */
const misfits: unknown[] = []

before(async () => {
  service = await startService({ webhookNetworks: '127.0.0.0/8' })
  receiver = createServer((request, response) => {
    void text(request).then((body) => {
      const headers = request.headers as Record<string, string>
      const message = JSON.parse(body) as Received['body']
      if (message.type in WEBHOOK_MESSAGES) misfits.push(...misfitsOf(message))
      received.push({ path: request.url ?? '', headers, body: message })
      response.writeHead(Number(request.url?.split('/')[1]) || 200).end()
    })
  }).listen(0, '127.0.0.1')
  await once(receiver, 'listening')
})
after(async () => {
  receiver.close()
  await service.close()
})

function misfitsOf(message: Received['body']): unknown[] {
  const { body } = WEBHOOK_MESSAGES[message.type as keyof typeof WEBHOOK_MESSAGES]
  return Compile(body as TSchema).Errors(message)
}

const home = () => `/environments/${service.environmentId}/webhooks`
const at = (path: string) => `http://127.0.0.1:${(receiver.address() as AddressInfo).port}${path}`

async function create(given: Record<string, unknown> = {}): Promise<CreatedWebhook> {
  const { status, body } = await service.operator<CreatedWebhook>(home(), { body: { url: at('/200'), ...given } })
  assert.equal(status, 201)
  return body
}

/** The messages of a path, once there are `count` of them. */
async function arrived(path: string, count = 1): Promise<Received[]> {
  const found = () => received.filter((each) => each.path === path)
  await eventually(() => found().length >= count, `${count} messages on ${path}`)
  return found()
}

function signature({ headers, body }: Pick<Received, 'headers' | 'body'>, secret: string): string {
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${JSON.stringify(body)}`
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
}

async function deliveryOf(webhook: Webhook, wanted: (delivery: Delivery) => boolean): Promise<Delivery> {
  const find = async () =>
    (await service.operator<DeliveryPage>(`${home()}/${webhook.id}/deliveries`)).body.items.find(wanted)
  return eventually(find, 'the delivery')
}

const ask = (clientRequestId: string) =>
  service.api<{ id: string }>('/firewall-approvals', {
    headers: { 'x-service-client-id': 'client' },
    body: { clientRequestId, toolName: 'refund', inputHash: 'ab'.repeat(32), reason: 'over 100' },
  })

test('messages of a new approval and its decision arrive, signed with the secret that was shown once', async () => {
  const webhook = await create({ url: at('/200/signed'), events: ['approval.requested', 'approval.decided'] })
  const { body: approval } = await ask('signed')
  const approvals = `/environments/${service.environmentId}/approvals`
  await service.operator(`${approvals}/${approval.id}/decision`, { body: { decision: 'APPROVED', reason: 'fine' } })
  const messages = await arrived('/200/signed', 2)
  const told = messages.map(({ body }) => [body.type, body.data['approvalId'], body.data['status']].join(' '))
  assert.deepEqual(told.toSorted(), [
    `approval.decided ${approval.id} APPROVED`,
    `approval.requested ${approval.id} PENDING`,
  ])
  for (const { headers, body } of messages) {
    assert.equal(headers['webhook-signature'], signature({ headers, body }, webhook.secret))
    assert.ok(String(body.data['url']).endsWith(`/${service.environmentId}/approvals/${approval.id}`))
  }
  const listed = await service.operator(home())
  assert.ok(!listed.text.includes(webhook.secret))
})

test('a message shows what would run if its webhook does, as the agent recorded it after it asked', async () => {
  const events = ['approval.requested']
  const refused = await service.operator(home(), { body: { url: at('/200'), showsInput: true } })
  assert.deepEqual([refused.status, refused.text.includes('showsInput')], [400, true])
  const shows = await create({ url: at('/200/shows'), format: 'teams', events, showsInput: true })
  const silent = await create({ url: at('/200/silent'), format: 'teams', events })
  assert.deepEqual([shows.showsInput, silent.showsInput], [true, false])
  const said = { toolName: 'Bash', inputHash: 'cd'.repeat(32) }
  const { body: approval } = await service.api<{ id: string }>('/firewall-approvals', {
    headers: { 'x-service-client-id': 'client' },
    body: { clientRequestId: 'shown', runId: 'shown', ...said },
  })
  const payload = { action: 'REQUIRE_APPROVAL', ...said, approvalId: approval.id, input: { command: 'cat .env' } }
  await service.record([event({ runId: 'shown', eventType: 'POLICY_DECISION', payload })])
  const [card] = await arrived('/200/shows')
  assert.match(JSON.stringify(card?.body), /Input, masked by the client: .*\$ cat \.env/)
  const [other] = await arrived('/200/silent')
  assert.doesNotMatch(JSON.stringify(other?.body), /cat [.]env/)
  const { body: changed } = await service.operator<Webhook>(`${home()}/${shows.id}/change`, {
    body: { showsInput: false },
  })
  assert.equal(changed.showsInput, false)
})

test('a message for Teams is a card, an event for PagerDuty has its key in the body, not in the address', async () => {
  const events = ['approval.requested']
  await create({ url: at('/202/teams'), format: 'teams', events })
  const keyless = await service.operator(home(), { body: { url: at('/202/pd'), format: 'pagerduty', events } })
  assert.deepEqual([keyless.status, keyless.text.includes('?routing_key=')], [400, true])
  const webhook = await create({ url: at('/202/pd?routing_key=R0UT1NG'), format: 'pagerduty', events })
  const refused = await service.operator(`${home()}/${webhook.id}/change`, { body: { url: at('/202/pd') } })
  assert.equal(refused.status, 400)
  const { body: approval } = await ask('services')
  const [[card], [page]] = await Promise.all([arrived('/202/teams'), arrived('/202/pd')])
  const event = page?.body as unknown as Record<string, unknown>
  assert.deepEqual([event['routing_key'], event['event_action']], ['R0UT1NG', 'trigger'])
  assert.ok(String(event['client_url']).endsWith(`/approvals/${approval.id}`))
  assert.ok(JSON.stringify(card?.body).includes('"type":"AdaptiveCard"'))
  assert.equal((await deliveryOf(webhook, ({ status }) => status === 'DELIVERED')).responseStatus, 202)
})

test('a failing receiver gets a retry, the log shows why, and a person can send it again', async () => {
  const webhook = await create({ url: at('/500/failing') })
  const { status, body } = await service.operator<Delivery>(`${home()}/${webhook.id}/test`, { method: 'POST' })
  assert.deepEqual([status, body.status, body.type], [202, 'PENDING', 'webhook.test'])
  const failed = await deliveryOf(webhook, ({ attempts }) => attempts === 1)
  assert.deepEqual([failed.status, failed.responseStatus, failed.error], ['PENDING', 500, 'The receiver answered 500'])
  assert.ok(failed.nextAttemptAt !== null && failed.nextAttemptAt > (failed.lastAttemptAt ?? ''))
  const again = `${home()}/${webhook.id}/deliveries/${failed.id}/redeliver`
  assert.equal((await service.operator(again, { method: 'POST' })).status, 409)
  const inCapitals = again.replace(failed.id, failed.id.toUpperCase())
  assert.equal((await service.operator(inCapitals, { method: 'POST' })).status, 409)
  await service.operator(`${home()}/${webhook.id}/change`, { body: { enabled: false } })
  assert.equal((await service.operator(`${home()}/${webhook.id}/test`, { method: 'POST' })).status, 409)
})

test('a receiver that answers 410 disables its webhook; a delivered message can be sent again with the same id', async () => {
  const gone = await create({ url: at('/410/gone') })
  await service.operator(`${home()}/${gone.id}/test`, { method: 'POST' })
  await deliveryOf(gone, ({ status }) => status === 'FAILED')
  const { body } = await service.operator<{ items: Webhook[] }>(home())
  assert.match(body.items.find(({ id }) => id === gone.id)?.disabledReason ?? '', /410/)

  const kept = await create({ url: at('/200/kept') })
  await service.operator(`${home()}/${kept.id}/test`, { method: 'POST' })
  const { id } = await deliveryOf(kept, ({ status }) => status === 'DELIVERED')
  const again = `${home()}/${kept.id}/deliveries/${id}/redeliver`
  assert.equal((await service.operator(again, { method: 'POST' })).status, 202)
  const messages = await arrived('/200/kept', 2)
  assert.deepEqual(
    messages.map(({ headers }) => headers['webhook-id']),
    [id, id],
  )
})

test('after its secret is rotated both sign, and only the new one is shown', async () => {
  const webhook = await create({ url: at('/200/rotated') })
  const { body } = await service.operator<CreatedWebhook>(`${home()}/${webhook.id}/rotate-secret`, { method: 'POST' })
  assert.notEqual(body.secret, webhook.secret)
  await service.operator(`${home()}/${webhook.id}/test`, { method: 'POST' })
  const [message] = await arrived('/200/rotated')
  assert.equal(message?.headers['webhook-signature']?.split(' ').length, 2)
})

test('an address inside our network is rejected with its reason, and the attempt is audited', async () => {
  const urls = ['http://169.254.169.254/latest', 'http://10.0.0.1/', 'http://[fd00::1]/', 'ftp://example.com', 'x']
  for (const url of urls) {
    const answer = await service.operator<{ errors: { path: string }[] }>(home(), { body: { url } })
    assert.equal(answer.status, 400, url)
    assert.equal(answer.body.errors[0]?.path, '/url')
  }
  const webhook = await create()
  const change = `${home()}/${webhook.id}/change`
  assert.equal((await service.operator(change, { body: { url: 'http://192.168.1.1/' } })).status, 400)
  const { body } = await service.operator<{ items: { action: string; detail: object }[] }>('/audit')
  const actions = body.items.map(({ action }) => action)
  assert.ok(actions.includes('webhook.create.refused') && actions.includes('webhook.change.refused'))
  assert.ok(!JSON.stringify(body).includes(webhook.secret))
})

test('invalid fields get 400, unknown and foreign webhooks the same 404', async () => {
  const bad = [
    {},
    { url: at('/200'), events: [] },
    { url: at('/200'), events: ['approval'] },
    { url: at('/200'), events: ['issue.opened', 'issue.opened'] },
    { url: at('/200'), format: 'morse' },
    { url: `${at('/')}${'x'.repeat(2_000)}` },
    { url: at('/200'), description: 'a\0' },
  ]
  for (const body of bad) assert.equal((await service.operator(home(), { body })).status, 400, JSON.stringify(body))
  const other = await service.newTenant('webhooks of others')
  const webhook = await create()
  const unknown = '01900000-0000-7000-8000-000000000000'
  for (const path of ['change', 'rotate-secret', 'remove', 'test', 'deliveries', `deliveries/${unknown}/redeliver`]) {
    const request = path === 'change' ? { body: {} } : { method: path === 'deliveries' ? 'GET' : 'POST' }
    const answers = [
      await service.operator(`${home()}/${unknown}/${path}`, request),
      await service.operator(`/environments/${other.environmentId}/webhooks/${webhook.id}/${path}`, request),
    ]
    const bodies = answers.map(({ status, text: body }) => `${status} ${body.replace(/"requestId":"[^"]*"/, '')}`)
    assert.equal(new Set(bodies).size, 1, path)
    assert.equal(answers[0]?.status, 404, path)
  }
  assert.equal((await service.operator(`${home()}/${webhook.id}/remove`, { method: 'POST' })).status, 200)
  assert.equal((await service.operator(`${home()}/${webhook.id}/test`, { method: 'POST' })).status, 404)
})

test('viewers see only the origin of a webhook address, because path and query may be secret', async () => {
  const made = await create({ url: at('/200/T0KEN?key=SECRET') })
  const { body: me } = await service.operator<{ workspaces: { id: string }[] }>('/me')
  const { body: all } = await service.operator<{ items: { id: string }[] }>('/workspaces')
  const workspaceId = all.items[0]?.id ?? me.workspaces[0]?.id
  for (const [role, shown] of [
    ['viewer', `${new URL(made.url).origin}/…`],
    ['approver', `${new URL(made.url).origin}/…`],
    ['admin', made.url],
  ] as const) {
    const token = await service.operator<{ token: string }>(`/workspaces/${workspaceId}/tokens`, {
      body: { name: role, role },
    })
    const headers = { authorization: `Bearer ${token.body.token}` }
    const list = await service.operator<{ items: Webhook[] }>(home(), { headers })
    assert.equal(list.body.items.find(({ id }) => id === made.id)?.url, shown, role)
    const { text } = await service.operator(`/workspaces/${workspaceId}/audit`, { headers })
    assert.ok(!text.includes('SECRET') && !text.includes('T0KEN'))
  }
})

test('a change has only fields of the contract; others reach neither the webhook nor the audit log', async () => {
  const { secret, ...webhook } = await create({ url: at('/200/named') })
  const other = await service.newTenant('webhooks elsewhere')
  const unnamed = { environmentId: other.environmentId, id: other.environmentId, secret: 'whsec_Zm9yZ2Vk', zzz: 1 }
  const change = `${home()}/${webhook.id}/change`
  const refused = await service.operator(change, { body: { ...unnamed, description: 'forged' } })
  assert.deepEqual(refusalOf(refused), [400, 'invalid_request'])
  const answer = await service.operator<Webhook>(change, { body: { description: 'changed' } })
  assert.deepEqual([answer.status, answer.body], [200, { ...webhook, description: 'changed' }])
  const audit = await service.operator<{ items: { action: string; detail: object }[] }>('/audit')
  const entry = audit.body.items.find(({ action }) => action === 'webhook.change')
  assert.deepEqual(entry?.detail, { description: 'changed' })

  await service.operator(`${home()}/${webhook.id}/test`, { method: 'POST' })
  const [message] = await arrived('/200/named')
  assert.ok(message)
  assert.equal(message.headers['webhook-signature'], signature(message, secret))
})

test('every message about approvals and issues matches the contract', async () => {
  await create({ url: at('/200/issues'), events: ['issue.opened'] })
  await openedIssue(service, issueRecord())
  await arrived('/200/issues')
  const types = new Set(received.map(({ body }) => body.type).filter((type) => type in WEBHOOK_MESSAGES))
  assert.ok(types.size >= 4, [...types].join(', '))
  assert.deepEqual(misfits, [])
})
