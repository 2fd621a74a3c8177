/** Linking a Slack user: from the button in Slack to the account, and back. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import type { CreatedWebhook, WebhookPage } from '@tacho/contract/messages/webhook.ts'
import { eventually } from '../../server/test/setup/eventually.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, EMAIL, PASSWORD, startConsole, type TestConsole } from './setup/console.ts'

const SECRET = '8f742231b10e8888abcd99yyyzzz85a5'

describe('Slack', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  let slack: Server
  const answers: string[] = []
  before(async () => {
    tacho = await startConsole({ webhookNetworks: '127.0.0.0/8' })
    slack = createServer((request, response) => {
      void text(request).then((body) => {
        if (request.url === '/actions') answers.push((JSON.parse(body) as { text: string }).text)
        response.end('ok')
      })
    }).listen(0, '127.0.0.1')
    await once(slack, 'listening')
  })
  after(async () => {
    slack.close()
    await tacho.close()
  })

  const at = (path: string) => `http://127.0.0.1:${(slack.address() as AddressInfo).port}${path}`
  const hooks = () => `/environments/${tacho.service.environmentId}/webhooks`

  /** Sends a pressed button like Slack, and returns the link that only the person sees. */
  async function press({ interactionsUrl }: CreatedWebhook): Promise<string> {
    const payload = {
      type: 'block_actions',
      team: { id: 'T1', domain: 'example' },
      user: { id: 'U1', username: 'ada\u202e' },
      actions: [{ action_id: 'tacho_approve', value: 'none' }],
      response_url: at('/actions'),
    }
    const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString()
    const time = String(Math.floor(Date.now() / 1_000))
    const signature = `v0=${createHmac('sha256', SECRET).update(`v0:${time}:${body}`).digest('hex')}`
    const headers = { 'x-slack-request-timestamp': time, 'x-slack-signature': signature }
    const form = { 'content-type': 'application/x-www-form-urlencoded', ...headers }
    const path = new URL(interactionsUrl ?? '').pathname
    const count = answers.length
    assert.equal((await tacho.service.call(path, { body, headers: form })).status, 200)
    const answer = await eventually(() => answers[count], 'the answer')
    const address = new URL(/<([^|>]+)\|/.exec(answer)?.[1] ?? '')
    return `${address.pathname}${address.hash}`
  }

  test('an admin sets the secret, a person links their Slack user after signing in, and removes the link', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/settings/webhooks`)
    await page.getByRole('button', { name: 'New webhook' }).click()
    await page.getByLabel('Address').fill(at('/services/T/B/x'))
    await page.getByRole('radio', { name: /^Slack/ }).check()
    await page.getByLabel('Signing secret').fill(SECRET)
    await assertLooks(page, 'new webhook for Slack')
    await page.getByRole('button', { name: 'Create webhook' }).click()
    const webhook = await eventually(
      async () => (await tacho.service.operator<WebhookPage>(hooks())).body.items[0],
      'the webhook',
    )
    const link = await press(webhook as CreatedWebhook)

    await page.context().clearCookies()
    await page.goto(new URL(link, tacho.service.url).href)
    await page.getByLabel('E-mail').fill(EMAIL)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByText('This Slack user will decide approvals').waitFor()
    // The code leaves the address bar.
    await page.waitForURL(({ hash }) => hash === '')
    await page.getByText('\\u202e').waitFor()
    await assertLooks(page, 'link a Slack user')
    await page.getByRole('button', { name: 'This is me: link it' }).click()
    await page.getByText('Linked. Press the button in Slack again').waitFor()

    await page.goto(`${tacho.home}/settings/webhooks/${webhook.id}`)
    await page.getByText('/slack/interactions/').waitFor()
    await page.getByRole('table', { name: 'Slack users' }).getByText(EMAIL).waitFor()
    await assertLooks(page, 'webhook for Slack')
    await page.goto(`${tacho.home}/settings/account`)
    await page.getByRole('table', { name: 'Slack users' }).getByText('U1 in example').waitFor()
    await assertLooks(page, 'account with Slack')
    await page.getByRole('button', { name: /^Remove the link/ }).click()
    await page.getByRole('table', { name: 'Slack users' }).waitFor({ state: 'detached' })

    await page.goto(new URL(link, tacho.service.url).href)
    await page.getByText('This link no longer works').waitFor()
    await page.goto(`${tacho.home}/settings/webhooks/${webhook.id}`)
    await page.getByRole('button', { name: 'Stop decisions in Slack…' }).click()
    await page.getByRole('button', { name: 'Remove the signing secret' }).click()
    await page.getByText('/slack/interactions/').waitFor({ state: 'detached' })
    await close()
  })
})
