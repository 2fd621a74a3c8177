/** A fake Slack that signs requests and stores the answers, and a service with a webhook for its app. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import type { Approval } from '@tacho/contract/approvals/approval.ts'
import type { ApprovalDetail } from '@tacho/contract/approvals/operator-approval.ts'
import type { SlackLink } from '@tacho/contract/messages/slack-link.ts'
import type { CreatedWebhook } from '@tacho/contract/messages/webhook.ts'
import type { AuditPage } from '@tacho/contract/people/audit.ts'
import type { Role } from '@tacho/contract/web/route.ts'
import { newPerson, type Browser } from '../http/people/browser.ts'
import { replyOf } from '../http/web/contract.ts'
import { approvalCalls, type ApprovalCalls } from './approval-service.ts'
import { eventually } from './eventually.ts'
import { startService, type Answer, type Service } from './service.ts'

export const SECRET = '8f742231b10e8888abcd99yyyzzz85a5'
const TEAM = { id: 'T9TK3CUKW', domain: 'example' }

interface Message {
  path: string
  body: { text: string; blocks?: unknown[]; response_type?: string; replace_original?: boolean }
}

interface Press {
  user?: string
  act?: 'approve' | 'reject'
  to?: { id: string; interactionsUrl: string | null }
  secret?: string
  ageMs?: number
  responseUrl?: string
  /** Number of messages that Slack gets. */
  count?: number
}

/** Starts both before the tests of a file, and closes them after. Objects that it returns are empty until the tests begin. */
export function slackService() {
  const service = {} as Service
  const calls = {} as ApprovalCalls
  const webhook = {} as CreatedWebhook
  const workspace = { id: '' }
  const messages: Message[] = []
  let clockMs = 0
  let presses = 0
  const slack = createServer((request, response) => {
    void text(request).then((body) => {
      messages.push({ path: request.url ?? '', body: JSON.parse(body) as Message['body'] })
      response.end('ok')
    })
  })

  before(async () => {
    slack.listen(0, '127.0.0.1')
    await once(slack, 'listening')
    Object.assign(service, await startService({ webhookNetworks: '127.0.0.0/8' }, () => Date.now() + clockMs))
    Object.assign(calls, approvalCalls(service))
    const workspaces = await service.operator<{ items: { id: string }[] }>('/workspaces')
    workspace.id = workspaces.body.items[0]?.id ?? ''
    Object.assign(webhook, await newWebhook('/services/T/B/main'))
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

  /** Sends the request of Slack for a pressed button, and returns the messages that Slack gets for it. */
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
    const browser = await newPerson(service, email, role, workspace.id)
    return { email, browser, user: `U-${name}`, link: await link(browser, `U-${name}`) }
  }

  const auditOf = async (targetId: string) => {
    const { body } = await service.operator<AuditPage>(`/workspaces/${workspace.id}/audit?targetId=${targetId}`)
    return body.items
  }

  return {
    service,
    calls,
    webhook,
    workspace,
    messages,
    passTime: (ms: number) => (clockMs += ms),
    at,
    home,
    newWebhook,
    press,
    payloadOf,
    post,
    postOnce,
    newApproval,
    stateOf,
    codeOf,
    links,
    link,
    newLinkedPerson,
    auditOf,
  }
}
