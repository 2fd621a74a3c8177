/** Webhooks that send mail: to members only, through a real mail server. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { CreatedWebhook, Delivery, DeliveryPage, Webhook, WebhookPage } from '@tacho/contract/messages/webhook.ts'
import { approvalCalls } from '../../setup/approval-service.ts'
import { eventually } from '../../setup/eventually.ts'
import { startService, type Service } from '../../setup/service.ts'
import { startSmtpSink, type SmtpSink } from '../../setup/smtp-sink.ts'
import { newPerson } from '../people/browser.ts'

let service: Service
let sink: SmtpSink
let workspaceId: string

before(async () => {
  sink = await startSmtpSink()
  const variables = { TACHO_SMTP_URL: `smtp://127.0.0.1:${sink.port}` }
  service = await startService({ mailFrom: 'tacho@example.org' }, Date.now, variables)
  workspaceId = (await service.operator<{ items: { id: string }[] }>('/workspaces')).body.items[0]?.id ?? ''
})
after(async () => {
  await service.close()
  await sink.close()
})

const hooks = () => `/environments/${service.environmentId}/webhooks`
const create = (url: string, events = ['approval.requested']) =>
  service.operator<CreatedWebhook>(hooks(), { body: { url, format: 'mail', events } })
const mailsTo = (address: string) => sink.mails.filter(({ to }) => to.includes(address))

async function lastDelivery(webhook: Webhook, wanted: (delivery: Delivery) => boolean): Promise<Delivery> {
  const find = async () =>
    (await service.operator<DeliveryPage>(`${hooks()}/${webhook.id}/deliveries`)).body.items.find(wanted)
  return eventually(find, 'the delivery')
}

test('a request for approval arrives by mail, with the link to its page', async () => {
  await newPerson(service, 'ada@example.com', 'approver', workspaceId)
  const { status, body, text } = await create('mailto:Ada@example.com')
  assert.equal(status, 201, text)
  const { body: approval } = await approvalCalls(service).ask({ toolName: 'refund', reason: 'over 100' })
  const mail = await eventually(() => mailsTo('ada@example.com')[0], 'the mail')
  assert.ok(mail.raw.includes('Subject: Approval requested: over 100'))
  const content = mail.raw.replaceAll('=\r\n', '')
  assert.ok(content.includes(`/approvals/${approval.id}`), content)
  assert.equal((await lastDelivery(body, ({ status: is }) => is === 'DELIVERED')).responseStatus, 250)
  const viewer = await newPerson(service, 'eve@example.com', 'viewer', workspaceId)
  const shown = (await viewer.get<WebhookPage>(hooks())).body.items.find(({ id }) => id === body.id)
  assert.equal(shown?.url, 'mailto:…')
})

test('only members of the workspace get mail, and only at one plain address', async () => {
  const elsewhere = await service.newTenant('elsewhere')
  await newPerson(service, 'zoe@example.com', 'owner', elsewhere.workspaceId)
  for (const url of ['mailto:zoe@example.com', 'mailto:nobody@example.com', 'https://example.com/', 'mailto:x']) {
    const refused = await create(url)
    assert.deepEqual([refused.status, refused.text.includes('a member of the workspace')], [400, true], url)
  }
  const changed = await create('mailto:ada@example.com')
  const path = `${hooks()}/${changed.body.id}/change`
  assert.equal((await service.operator(path, { body: { url: 'mailto:zoe@example.com' } })).status, 400)
})

test('who is no longer a member gets no more mail, and the webhook is disabled', async () => {
  await newPerson(service, 'gone@example.com', 'approver', workspaceId)
  const { body } = await create('mailto:gone@example.com')
  const people = await service.operator<{ items: { id: string; email: string }[] }>(
    `/workspaces/${workspaceId}/operators`,
  )
  const gone = people.body.items.find(({ email }) => email === 'gone@example.com')
  await service.operator(`/workspaces/${workspaceId}/operators/${gone?.id}/remove`, { body: {} })
  await service.operator(`${hooks()}/${body.id}/test`, { method: 'POST' })
  const delivery = await lastDelivery(body, ({ status }) => status === 'FAILED')
  assert.match(delivery.error ?? '', /no member/)
  const { items } = (await service.operator<WebhookPage>(hooks())).body
  assert.match(items.find(({ id }) => id === body.id)?.disabledReason ?? '', /no member/)
  assert.equal(mailsTo('gone@example.com').length, 0)
})

test('a mail that is refused for good fails at once, and one that is refused for a while waits', async () => {
  await newPerson(service, 'bob@example.com', 'approver', workspaceId)
  for (const [code, status, attempts] of [
    [550, 'FAILED', 1],
    [451, 'PENDING', 1],
  ] as const) {
    const { body } = await create('mailto:bob@example.com', ['run.failed'])
    sink.refuseWith(code)
    await service.operator(`${hooks()}/${body.id}/test`, { method: 'POST' })
    const delivery = await lastDelivery(body, ({ responseStatus }) => responseStatus === code)
    assert.deepEqual(
      [delivery.status, delivery.attempts, delivery.nextAttemptAt === null],
      [status, attempts, status === 'FAILED'],
    )
    sink.refuseWith(null)
  }
})

test('a server without a mail server refuses webhooks by mail', async () => {
  const plain = await startService()
  const body = { url: 'mailto:ada@example.com', format: 'mail' }
  const refused = await plain.operator(`/environments/${plain.environmentId}/webhooks`, { body })
  assert.deepEqual([refused.status, refused.text.includes('TACHO_SMTP_URL')], [409, true])
  await plain.close()
})
