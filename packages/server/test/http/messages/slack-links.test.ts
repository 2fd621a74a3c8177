/** Links of Slack users to accounts, by codes that only the person who pressed the button sees. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { SECRET, slackService } from '../../setup/slack-service.ts'
import { newPerson, openBrowser, signIn, type Browser } from '../people/browser.ts'
import { replyOf } from '../web/contract.ts'

const {
  service,
  webhook,
  workspace,
  passTime,
  home,
  newWebhook,
  press,
  newApproval,
  stateOf,
  codeOf,
  links,
  link,
  newLinkedPerson,
} = slackService()

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

test('a webhook decides approvals of its own environment only, and its codes are of no use elsewhere', async () => {
  const { email } = await newLinkedPerson('jan', 'owner')
  const jan = openBrowser(service)
  await signIn(jan, email)
  const tenant = await service.newTenant('next tenant')
  const theirs = await newWebhook('/services/next', {}, tenant.environmentId)
  const { id } = await newApproval()
  // The same Slack user and signing secret in another tenant are not linked: a link belongs to one webhook.
  const asked = await press(id, { user: 'U-jan', to: theirs })
  assert.equal(asked[0]?.response_type, 'ephemeral')
  const code = /#[^.]+\.([^|>]+)\|/.exec(asked[0]?.text ?? '')?.[1] ?? ''
  assert.equal((await jan.post(`${links()}/confirm`, { code })).status, 404)
  assert.equal(
    (await jan.post(`${home(tenant.environmentId)}/webhooks/${theirs.id}/slack-links/confirm`, { code })).status,
    404,
  )
  assert.equal((await stateOf(id)).status, 'PENDING')
  // A linked person of the other tenant cannot decide an approval of this environment.
  const owner = await newPerson(service, 'owner-there@example.com', 'owner', tenant.workspaceId)
  const there = `${home(tenant.environmentId)}/webhooks/${theirs.id}/slack-links/confirm`
  assert.equal((await owner.post(there, { code })).status, 200)
  const [message] = await press(id, { user: 'U-jan', to: theirs })
  assert.ok(message?.text.includes('does not exist'))
  assert.equal((await stateOf(id)).status, 'PENDING')
})

test('a code expires, and a new press replaces it', async () => {
  const kim = await newPerson(service, 'kim@example.com', 'approver', workspace.id)
  const { id } = await newApproval()
  const first = codeOf(await press(id, { user: 'U-kim' }))
  const second = codeOf(await press(id, { user: 'U-kim' }))
  assert.equal((await kim.post(`${links()}/open`, { code: first })).status, 404)
  assert.equal((await kim.post(`${links()}/open`, { code: second })).status, 200)
  passTime(LIMITS.slackCodeMs)
  assert.equal((await kim.post(`${links()}/confirm`, { code: second })).status, 404)
})
