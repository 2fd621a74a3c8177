/** Decisions by buttons in Slack, with a server that signs as Slack does and keeps what it is answered. */
import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Approval } from '@tacho/contract/approvals/approval.ts'
import type { Role } from '@tacho/contract/web/route.ts'
import type { ApprovalDetail } from '@tacho/contract/approvals/operator-approval.ts'
import type { AuditPage } from '@tacho/contract/people/audit.ts'
import type { SlackLink } from '@tacho/contract/messages/slack-link.ts'
import type { CreatedWebhook } from '@tacho/contract/messages/webhook.ts'
import { approvalCalls, CLIENT, HASH, type ApprovalCalls } from '../../setup/approval-service.ts'
import { eventually } from '../../setup/eventually.ts'
import { event, startService, type Answer, type Service } from '../../setup/service.ts'
import { newPerson, openBrowser, signIn, type Browser } from '../people/browser.ts'
import { replyOf } from '../web/contract.ts'

const SECRET = '8f742231b10e8888abcd99yyyzzz85a5'
const TEAM = { id: 'T9TK3CUKW', domain: 'example' }

interface Message {
  path: string
  body: { text: string; blocks?: unknown[]; response_type?: string; replace_original?: boolean }
}

let service: Service
let calls: ApprovalCalls
let slack: Server
let webhook: CreatedWebhook
let workspaceId: string
let clockMs = 0
const messages: Message[] = []

before(async () => {
  service = await startService({ webhookNetworks: '127.0.0.0/8' }, () => Date.now() + clockMs)
  calls = approvalCalls(service)
  slack = createServer((request, response) => {
    void text(request).then((body) => {
      messages.push({ path: request.url ?? '', body: JSON.parse(body) as Message['body'] })
      response.end('ok')
    })
  }).listen(0, '127.0.0.1')
  await once(slack, 'listening')
  const workspaces = await service.operator<{ items: { id: string }[] }>('/workspaces')
  workspaceId = workspaces.body.items[0]?.id ?? ''
  webhook = await newWebhook('/services/T/B/main')
})
after(async () => {
  slack.close()
  await service.close()
})

const at = (path: string) => `http://127.0.0.1:${(slack.address() as AddressInfo).port}${path}`
const home = (environmentId = service.environmentId) => `/environments/${environmentId}`

async function newWebhook(path: string, given: object = {}, environmentId = service.environmentId) {
  const body = { url: at(path), format: 'slack', events: ['approval.requested'], signingSecret: SECRET, ...given }
  return replyOf('createWebhook', await service.operator(`${home(environmentId)}/webhooks`, { body }))
}

interface Press {
  user?: string
  act?: 'approve' | 'reject'
  to?: { id: string; interactionsUrl: string | null }
  secret?: string
  ageMs?: number
  responseUrl?: string
  /** How many messages Slack gets. */
  count?: number
}

let presses = 0

/** Sends what Slack sends when a person presses a button, and returns the messages that Slack gets for it. */
async function press(approvalId: string, given: Press = {}): Promise<Message['body'][]> {
  const path = `/actions/${++presses}`
  const reply = await post(payloadOf(approvalId, { responseUrl: at(path), ...given }), given)
  assert.deepEqual([reply.status, reply.text], [200, ''])
  const found = () => messages.filter((message) => message.path === path).map(({ body }) => body)
  await eventually(() => found().length >= (given.count ?? 1), 'the answers in Slack')
  return found()
}

function payloadOf(approvalId: string, { user = 'U1', act = 'approve', responseUrl = at('/actions') }: Press) {
  return {
    type: 'block_actions',
    team: TEAM,
    user: { id: user, username: `name of ${user}`, team_id: TEAM.id },
    actions: [{ type: 'button', action_id: `tacho_${act}`, value: approvalId }],
    response_url: responseUrl,
  }
}

/** Tests press buttons faster than people do. If the webhook refuses a press for its rate, this waits and presses again. */
async function post(payload: unknown, given: Press = {}): Promise<Answer> {
  const reply = await postOnce(payload, given)
  if (reply.status !== 429) return reply
  await setTimeout(Number(reply.headers.get('retry-after')) * 1_000)
  return post(payload, given)
}

function postOnce(payload: unknown, { to = webhook, secret = SECRET, ageMs = 0 }: Press = {}): Promise<Answer> {
  const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString()
  const timestamp = String(Math.floor((Date.now() + clockMs - ageMs) / 1_000))
  const signature = `v0=${createHmac('sha256', secret).update(`v0:${timestamp}:${body}`).digest('hex')}`
  return service.call(new URL(to.interactionsUrl ?? '').pathname, {
    body,
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'x-slack-request-timestamp': timestamp,
      'x-slack-signature': signature,
    },
  })
}

async function newApproval(fields: Record<string, unknown> = {}): Promise<Approval> {
  const asked = await calls.ask({ reason: 'over 100', ...fields })
  assert.equal(asked.status, 201, asked.text)
  return asked.body
}

const stateOf = async (id: string) => {
  const { body } = await service.operator<ApprovalDetail>(`${home()}/approvals/${id}`)
  return body
}

/** The code in the link that only the person who pressed sees. */
function codeOf([message]: Message['body'][]): string {
  assert.equal(message?.response_type, 'ephemeral')
  const address = /<([^|>]+)\|/.exec(message.text)?.[1] ?? ''
  assert.ok(address.startsWith(`http://`) && address.includes(`/slack-link#${webhook.id}.`), message.text)
  return address.split(`${webhook.id}.`)[1] ?? ''
}

const links = (of = webhook) => `${home()}/webhooks/${of.id}/slack-links`

async function link(browser: Browser, user: string): Promise<SlackLink> {
  const { id } = await newApproval()
  const code = codeOf(await press(id, { user }))
  return replyOf('confirmSlackLink', await browser.post(`${links()}/confirm`, { code }))
}

async function newLinkedPerson(name: string, role: Role = 'approver') {
  const email = `${name}@example.com`
  const browser = await newPerson(service, email, role, workspaceId)
  return { email, browser, user: `U-${name}`, link: await link(browser, `U-${name}`) }
}

const auditOf = async (targetId: string) => {
  const { body } = await service.operator<AuditPage>(`/workspaces/${workspaceId}/audit?targetId=${targetId}`)
  return body.items
}

test('the message of a request has buttons that name the approval, and a question before approving', async () => {
  const { id } = await newApproval({ toolName: 'refund' })
  const found = () =>
    messages.find(({ path, body }) => path === '/services/T/B/main' && JSON.stringify(body).includes(id))
  const { body } = await eventually(found, 'the message')
  const actions = body.blocks?.find((block) => (block as { type: string }).type === 'actions')
  const { elements } = actions as { elements: { action_id: string; value: string; confirm?: object }[] }
  assert.deepEqual(
    elements.map(({ action_id: action, value, confirm }) => [action, value, confirm !== undefined]),
    [
      ['tacho_approve', id, true],
      ['tacho_reject', id, false],
    ],
  )
})

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
  const audit = await service.operator(`/workspaces/${workspaceId}/audit`)
  for (const { text: shown } of [changed, listed, audit]) assert.ok(!shown.includes(SECRET))
  assert.ok(audit.text.includes('"signingSecret":"set"'))
  const { body } = await service.operator<CreatedWebhook>(`${home()}/webhooks/${plain.id}/change`, {
    body: { signingSecret: null },
  })
  assert.equal(body.interactionsUrl, null)
  const { id } = await newApproval()
  assert.equal((await post(payloadOf(id, {}), { to: changed.body })).status, 401)
})

test('a person links a Slack user once, and then decides in Slack as in the console', async () => {
  const email = 'ada@example.com'
  const ada = await newPerson(service, email, 'approver', workspaceId)
  const { id } = await newApproval({ toolName: 'refund' })
  const code = codeOf(await press(id, { user: 'U-ada' }))
  assert.equal((await stateOf(id)).status, 'PENDING')

  const stranger = await newPerson(service, 'viewer@example.com', 'viewer', workspaceId)
  assert.equal((await stranger.post(`${links()}/confirm`, { code })).status, 403)
  assert.equal((await openBrowser(service).post(`${links()}/confirm`, { code })).status, 401)
  assert.equal((await service.operator(`${links()}/confirm`, { body: { code } })).status, 403)
  const opened = await ada.post<{ userId: string; userName: string }>(`${links()}/open`, { code })
  assert.deepEqual([opened.body.userId, opened.body.userName], ['U-ada', 'name of U-ada'])
  const linked = replyOf('confirmSlackLink', await ada.post(`${links()}/confirm`, { code }))
  assert.deepEqual([linked.userId, linked.operator.email], ['U-ada', email])
  assert.equal((await ada.post(`${links()}/confirm`, { code })).status, 404, 'a code works once')
  assert.equal((await stateOf(id)).status, 'PENDING', 'a link decides nothing')

  const [message, ...more] = await press(id, { user: 'U-ada' })
  assert.deepEqual(more, [])
  const told = JSON.stringify(message)
  assert.equal(message?.replace_original, true)
  for (const part of ['Approval decided', 'APPROVED', email, 'refund', 'over 100']) assert.ok(told.includes(part), part)
  assert.ok(!told.includes('tacho_approve'), 'without buttons')
  const { status, decidedBy } = await stateOf(id)
  assert.deepEqual([status, decidedBy?.name, decidedBy?.kind, decidedBy?.via], ['APPROVED', email, 'operator', 'slack'])
  assert.equal((await calls.read(id)).body.status, 'APPROVED')
  const [entry] = await auditOf(id)
  const { slack: by } = (entry?.detail ?? {}) as { slack: Record<string, string> }
  assert.deepEqual(
    [entry?.action, entry?.actor.name, by['userId'], by['webhookId']],
    ['approval.approve', email, 'U-ada', webhook.id],
  )
})

test('a later press, and a request that is sent again, say what was decided and change nothing', async () => {
  const [bob, eve] = [await newLinkedPerson('bob'), await newLinkedPerson('eve', 'owner')]
  const { id } = await newApproval()
  await press(id, { user: bob.user, act: 'reject' })
  for (const { user } of [eve, bob]) {
    const [replaced, told] = await press(id, { user, count: 2 })
    assert.ok(JSON.stringify(replaced).includes('REJECTED'))
    assert.deepEqual([told?.response_type, told?.text.includes(`rejected by ${bob.email}`)], ['ephemeral', true])
  }
  assert.deepEqual([(await stateOf(id)).status, (await stateOf(id)).decidedBy?.name], ['REJECTED', bob.email])
  assert.deepEqual((await auditOf(id)).map(({ action }) => action).toSorted(), [
    'approval.approve.refused',
    'approval.approve.refused',
    'approval.reject',
  ])
})

test('of two people, the first is told that another must approve, and a Slack user is the linked account', async () => {
  const [kim, lea] = [await newLinkedPerson('kay'), await newLinkedPerson('lea')]
  const policy = {
    policyId: 'two-people',
    condition: 'true',
    severity: 'HIGH',
    action: 'REQUIRE_APPROVAL',
    approvers: 2,
  }
  assert.equal((await service.operator(`/workspaces/${workspaceId}/policies`, { body: policy })).status, 201)
  const items = [{ kind: 'policy', id: 'two-people', version: '1' }]
  assert.equal((await service.operator(`${home()}/deployments`, { body: { items } })).status, 200)
  const { id } = await newApproval({ policyId: 'two-people' })
  const [first] = await press(id, { user: kim.user })
  assert.match(first?.text ?? '', /Another person must approve it too/)
  const asksAgain = () =>
    messages.find(
      ({ body }) => body.text.startsWith('Approval requested') && JSON.stringify(body).includes(`by ${kim.email}`),
    )
  const told = JSON.stringify(await eventually(asksAgain, 'the message for the second person'))
  assert.ok(told.includes('tacho_approve') && told.includes('Approved first'), told)
  const [again] = await press(id, { user: kim.user })
  assert.match(again?.text ?? '', /somebody else must approve/)
  assert.equal((await calls.read(id)).body.status, 'PENDING')
  const [message] = await press(id, { user: lea.user })
  assert.ok(JSON.stringify(message).includes('APPROVED'))
  assert.equal((await calls.read(id)).body.status, 'APPROVED')
})

test('what was decided in the console is told in Slack, also to a webhook that asked for requests only', async () => {
  const { id } = await newApproval()
  await calls.decide(id, 'APPROVED', 'known customer')
  const found = () =>
    messages.find(({ body }) => body.text.startsWith('Approval decided') && JSON.stringify(body).includes(id))
  const { path, body } = await eventually(found, 'the outcome')
  assert.equal(path, '/services/T/B/main')
  assert.ok(JSON.stringify(body).includes('known customer'))
  const carol = await newLinkedPerson('carol')
  const [replaced, told] = await press(id, { user: carol.user, act: 'reject', count: 2 })
  assert.ok(JSON.stringify(replaced).includes('APPROVED'))
  assert.ok(told?.text.includes('approved'))
})

test('a message that showed no input approves none that came later, and the case of an id does not matter', async () => {
  const nia = await newLinkedPerson('nia')
  const shows = await newWebhook('/services/shows', { showsInput: true })
  const runId = randomUUID()
  const { id } = await newApproval({ runId })
  const found = () => messages.find(({ path, body }) => path === '/services/shows' && JSON.stringify(body).includes(id))
  const { body } = await eventually(found, 'the message, which waits a moment for the input')
  assert.ok(JSON.stringify(body).includes(`"value":"${id} unseen"`))
  const payload = { approvalId: id, toolName: 'transfer', inputHash: HASH, input: { to: 'Ada' } }
  const decision = event({ runId, clientId: CLIENT, eventType: 'POLICY_DECISION', payload })
  assert.equal((await service.api('/events/batch', { body: [decision] })).status, 200)
  const [told] = await press(`${id} unseen`, { user: nia.user })
  assert.match(told?.text ?? '', /recorded after this message/)
  assert.equal((await stateOf(id)).status, 'PENDING')
  await press(`${id.toUpperCase()} unseen`, { user: nia.user, act: 'reject' })
  assert.equal((await stateOf(id)).status, 'REJECTED')
  const other = await newApproval()
  await press(other.id.toUpperCase(), { user: nia.user })
  assert.equal((await stateOf(other.id)).status, 'APPROVED')
  await service.operator(`${home()}/webhooks/${shows.id}/remove`, { body: {} })
})

test('a request that is withdrawn says so in the channel, and a later press replaces the message', async () => {
  const max = await newLinkedPerson('max')
  const runId = randomUUID()
  const { id } = await newApproval({ runId })
  const payload = { approvalId: id, toolName: 'transfer', inputHash: HASH, reason: 'timeout' }
  const gone = event({ runId, clientId: CLIENT, eventType: 'APPROVAL_WITHDRAWN', payload })
  assert.equal((await service.api('/events/batch', { body: [gone] })).status, 200)
  const found = () =>
    messages.find(({ body }) => body.text.startsWith('Approval withdrawn') && JSON.stringify(body).includes(id))
  const { path, body } = await eventually(found, 'the withdrawal')
  assert.equal(path, '/services/T/B/main')
  assert.ok(JSON.stringify(body).includes('nothing will run') && !JSON.stringify(body).includes('tacho_approve'))
  const [replaced, told] = await press(id, { user: max.user, count: 2 })
  assert.ok(replaced?.replace_original && JSON.stringify(replaced).includes('nothing will run'))
  assert.match(told?.text ?? '', /nothing will run/)
})

test('two who press at the same time make one decision', async () => {
  const [one, two] = [await newLinkedPerson('one'), await newLinkedPerson('two')]
  const { id } = await newApproval()
  const told = await Promise.all([
    press(id, { user: one.user, act: 'approve' }),
    press(id, { user: two.user, act: 'reject' }),
  ])
  const { status, decidedBy } = await stateOf(id)
  assert.equal(decidedBy?.name, status === 'APPROVED' ? one.email : two.email)
  for (const [replaced] of told) assert.ok(JSON.stringify(replaced).includes(status))
  const actions = (await auditOf(id)).map(({ action }) => action)
  assert.deepEqual(
    actions.toSorted(),
    status === 'APPROVED'
      ? ['approval.approve', 'approval.reject.refused']
      : ['approval.approve.refused', 'approval.reject'],
  )
})

test('the role counts that the person has when the button is pressed', async () => {
  const { user, link: linked } = await newLinkedPerson('dan')
  const { id } = await newApproval()
  const role = (to: Role | 'remove') =>
    to === 'remove'
      ? service.operator(`/workspaces/${workspaceId}/operators/${linked.operator.id}/remove`, { body: {} })
      : service.operator(`/workspaces/${workspaceId}/operators/${linked.operator.id}/role`, { body: { role: to } })
  assert.equal((await role('viewer')).status, 200)
  const [lowered] = await press(id, { user })
  assert.deepEqual([lowered?.response_type, lowered?.text.includes('the role approver')], ['ephemeral', true])
  assert.equal((await stateOf(id)).status, 'PENDING')
  const [entry] = await auditOf(id)
  assert.deepEqual([entry?.action, entry?.actor.id], ['approval.decide.refused', linked.operator.id])
  assert.equal((await role('remove')).status, 200)
  const [gone] = await press(id, { user })
  assert.ok(gone?.text.includes('the role approver'))
  assert.equal((await stateOf(id)).status, 'PENDING')
})

test('links are listed and removed by the person and by an admin, and go with the account, the secret and the webhook', async () => {
  const own = async (browser: Browser) => replyOf('listOwnSlackLinks', await browser.get('/me/slack-links')).items
  const listed = async (of = webhook) =>
    replyOf('listSlackLinks', await service.operator(`${links(of)}?limit=200`)).items
  const [fay, gil] = [await newLinkedPerson('fay'), await newLinkedPerson('gil')]
  assert.deepEqual(await own(fay.browser), [fay.link])
  assert.equal((await gil.browser.post(`/me/slack-links/${fay.link.id}/remove`)).status, 404)
  assert.equal((await fay.browser.post(`${links()}/${gil.link.id}/remove`)).status, 403)
  replyOf('removeOwnSlackLink', await fay.browser.post(`/me/slack-links/${fay.link.id}/remove`))
  assert.deepEqual(await own(fay.browser), [])
  assert.ok((await listed()).some(({ id }) => id === gil.link.id))
  replyOf('removeSlackLink', await service.operator(`${links()}/${gil.link.id}/remove`, { body: {} }))
  assert.ok(!(await listed()).some(({ id }) => id === gil.link.id))
  const { id } = await newApproval()
  codeOf(await press(id, { user: gil.user }))

  const hal = await newLinkedPerson('hal')
  assert.equal((await service.operator(`/operators/${hal.link.operator.id}/remove`, { body: {} })).status, 200)
  assert.ok(!(await listed()).some(({ userId }) => userId === hal.user))
  codeOf(await press(id, { user: hal.user }))

  await link(fay.browser, 'U-fay-again')
  await service.operator(`${home()}/webhooks/${webhook.id}/change`, { body: { signingSecret: SECRET } })
  assert.deepEqual(await listed(), [], 'people confirmed the app of the old secret')
})

test('an approval that expired stays so, and one that never existed is told of as that', async () => {
  const ivy = await newLinkedPerson('ivy')
  const { id } = await newApproval({ timeoutMs: 60_000 })
  clockMs += 61_000
  const [replaced, told] = await press(id, { user: ivy.user, count: 2 })
  assert.ok(JSON.stringify(replaced).includes('expired undecided'))
  assert.ok(told?.text.includes('expired undecided'))
  assert.equal((await stateOf(id)).status, 'EXPIRED')
  for (const unknown of ['00000000-0000-7000-8000-000000000000', 'no id', '__proto__']) {
    const [message] = await press(unknown, { user: ivy.user })
    assert.ok(message?.text.includes('does not exist'))
  }
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
    'x-slack-request-timestamp': String(Math.floor((Date.now() + clockMs) / 1_000)),
    'x-slack-signature': `v0=${'0'.repeat(64)}`,
  }
  const path = new URL(webhook.interactionsUrl ?? '').pathname
  const large = await service.call(path, { body: 'x'.repeat(LIMITS.slackBodyBytes + 1), headers })
  assert.equal(large.status, 413)
  assert.equal((await service.call(path, { body: 'x'.repeat(LIMITS.slackBodyBytes), headers })).status, 401)
})

test('a webhook decides approvals of its own environment only, and its codes are of no use elsewhere', async () => {
  const { email } = await newLinkedPerson('jan', 'owner')
  const jan = openBrowser(service)
  await signIn(jan, email)
  const tenant = await service.newTenant('next tenant')
  const theirs = await newWebhook('/services/next', {}, tenant.environmentId)
  const { id } = await newApproval()
  // The same Slack user, and the same secret, in another tenant: the link is of one webhook.
  const asked = await press(id, { user: 'U-jan', to: theirs })
  assert.equal(asked[0]?.response_type, 'ephemeral')
  const code = /#[^.]+\.([^|>]+)\|/.exec(asked[0]?.text ?? '')?.[1] ?? ''
  assert.equal((await jan.post(`${links()}/confirm`, { code })).status, 404)
  assert.equal(
    (await jan.post(`${home(tenant.environmentId)}/webhooks/${theirs.id}/slack-links/confirm`, { code })).status,
    404,
  )
  assert.equal((await stateOf(id)).status, 'PENDING')
  // Somebody who decides there finds no approval of another environment.
  const owner = await newPerson(service, 'owner-there@example.com', 'owner', tenant.workspaceId)
  const there = `${home(tenant.environmentId)}/webhooks/${theirs.id}/slack-links/confirm`
  assert.equal((await owner.post(there, { code })).status, 200)
  const [message] = await press(id, { user: 'U-jan', to: theirs })
  assert.ok(message?.text.includes('does not exist'))
  assert.equal((await stateOf(id)).status, 'PENDING')
})

test('a code expires, and a new press replaces it', async () => {
  const kim = await newPerson(service, 'kim@example.com', 'approver', workspaceId)
  const { id } = await newApproval()
  const first = codeOf(await press(id, { user: 'U-kim' }))
  const second = codeOf(await press(id, { user: 'U-kim' }))
  assert.equal((await kim.post(`${links()}/open`, { code: first })).status, 404)
  assert.equal((await kim.post(`${links()}/open`, { code: second })).status, 200)
  clockMs += LIMITS.slackCodeMs
  assert.equal((await kim.post(`${links()}/confirm`, { code: second })).status, 404)
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
  // The decision counts; the message follows the next press.
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
  // A slow machine needs more than a second for a round, which begins a new window.
  let refused: Answer | undefined
  for (let round = 0; !refused && round < 20; round++) {
    refused = (await pressed(LIMITS.slackRequestsPerSecond + 1)).find(({ status }) => status !== 200)
  }
  assert.equal(refused?.status, 429)
  assert.equal(refused.headers.get('retry-after'), '1')
})

test('a workspace whose presses nobody takes the answers of leaves room for those of others', async () => {
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
