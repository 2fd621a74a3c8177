/** Settings: access of people and programs, and the audit log. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import type { ApiKeyPage } from '@tacho/contract/tenants/api-key.ts'
import { codeOf, newPerson, openBrowser } from '../../server/test/http/people/browser.ts'
import { eventually } from '../../server/test/setup/eventually.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, EMAIL, HARM, PASSWORD, pressBoth, startConsole, type TestConsole } from './setup/console.ts'

describe('settings', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  let receiver: Server
  const received: string[] = []
  before(async () => {
    tacho = await startConsole({ webhookNetworks: '127.0.0.0/8' })
    receiver = createServer((request, response) => {
      request.resume()
      received.push(request.url ?? '')
      response.writeHead(204).end()
    }).listen(0, '127.0.0.1')
    await once(receiver, 'listening')
  })
  after(async () => {
    receiver.close()
    await tacho.close()
  })

  const settings = (section = '') => `${tacho.home}/settings${section}`
  const keys = async () =>
    (await tacho.service.operator<ApiKeyPage>(`/environments/${tacho.service.environmentId}/keys`)).body.items

  test('a key is made by keyboard for a purpose, shown once, works, and is revoked', async () => {
    const { page, close } = await tacho.open()
    await page.getByRole('link', { name: 'Settings' }).waitFor()
    await pressBoth(page, 'g', ',')
    await page.waitForURL('**/settings/api-keys')
    await page.getByRole('button', { name: 'New key' }).waitFor()
    await page.keyboard.press('n')
    await page.keyboard.type('billing agent')
    await page.getByLabel('Expires').selectOption('In 30 days')
    await page.getByLabel('Requests per second').fill('50')
    await page.keyboard.press('Enter')
    const shown = page.getByRole('dialog', { name: 'The new key' })
    const key = (await shown.getByLabel('API key').textContent()) ?? ''
    assert.equal((await tacho.service.record([event()], key)).status, 200)
    // A dialog with a secret that is shown once closes only by its button.
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await shown.getByRole('button', { name: 'I have it' }).click()
    assert.equal(await page.getByText(key).count(), 0)
    const row = page.getByRole('row').filter({ hasText: 'billing agent' })
    await row.getByText('50/s').waitFor()
    await row.getByText('Active').waitFor()
    const made = (await keys()).find(({ name }) => name === 'billing agent')
    assert.deepEqual(made?.scopes, ['events:write', 'config:read', 'policies:read'])
    assert.ok(Math.abs(Date.parse(made?.expiresAt ?? '') - Date.now() - 30 * 86_400_000) < 3_600_000)
    const act = async (name: string) => {
      // Wait until the dialog is closed, because an open dialog gets the keys.
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await row
        .filter({ hasText: made?.id ?? '' })
        .getByRole('button', { name: /^Actions/ })
        .press('Enter')
      await page.getByRole('button', { name, exact: true }).press('Enter')
    }
    await act('Change…')
    await page.getByRole('checkbox', { name: /^policies:read/ }).uncheck()
    await page.getByLabel('Requests per second').fill('20')
    await page.getByRole('dialog').getByRole('button', { name: 'Change key' }).click()
    await row.getByText('20/s').waitFor()
    await row.getByText('policies:read').waitFor({ state: 'detached' })
    await act('Rotate…')
    await page.getByLabel('The old key works for').selectOption('a day')
    await assertLooks(page, 'settings rotate a key')
    await page.getByRole('dialog').getByRole('button', { name: 'Create the new key' }).click()
    const second = (await shown.getByLabel('API key').textContent()) ?? ''
    await shown.getByRole('button', { name: 'I have it' }).click()
    await row.getByText('Replaced', { exact: true }).waitFor()
    for (const either of [key, second]) assert.equal((await tacho.service.record([event()], either)).status, 200)
    await act('Revoke…')
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await row.getByText('Revoked').waitFor()
    assert.equal((await tacho.service.record([event()], key)).status, 401)
    assert.equal((await tacho.service.record([event()], second)).status, 200)
    await close()
  })

  test('chosen scopes are what a key gets; its name is only text', async () => {
    const { page, close } = await tacho.open(settings('/api-keys'))
    await page.getByRole('button', { name: 'New key' }).click()
    await page.getByLabel('Name').fill(HARM)
    await page.getByRole('radio', { name: /^Chosen scopes/ }).check()
    await page.getByRole('checkbox', { name: /^events:write/ }).uncheck()
    assert.ok(await page.getByRole('button', { name: 'Create key' }).isDisabled())
    await page.getByRole('checkbox', { name: /^usage:read/ }).check()
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByRole('button', { name: 'I have it' }).click()
    await page.getByRole('row').filter({ hasText: '<img src=x' }).waitFor()
    assert.deepEqual((await keys()).find(({ name }) => name === HARM)?.scopes, ['usage:read'])
    assert.equal(await page.locator('img, #root script').count(), 0)
    await close()
  })

  test('a person is invited by a link, accepts, gets another role, and is removed', async () => {
    const { page, close } = await tacho.open(settings('/people'))
    await page.getByRole('button', { name: 'Invite a person' }).click()
    await page.getByLabel('E-mail').fill('bob@example.com')
    await page.getByRole('radio', { name: /^Approver/ }).check()
    await page.getByRole('button', { name: 'Make the link' }).click()
    const shown = page.getByRole('dialog', { name: 'The invitation' })
    const link = (await shown.getByLabel('Invitation link').textContent()) ?? ''
    // This server has no public address, so nobody else could open its links.
    await shown.getByText(/opens only on the server's own machine \(localhost\)/).waitFor()
    await shown.getByRole('button', { name: 'I have it' }).click()
    await page.getByRole('table', { name: 'Invitations' }).getByText('bob@example.com').waitFor()
    const bob = openBrowser(tacho.service)
    const accepted = await bob.post('/invitations/accept', { token: link.split('#')[1], password: PASSWORD })
    assert.equal(accepted.status, 200, accepted.text)
    await page.reload()
    const row = page.getByRole('table', { name: 'People' }).getByRole('row').filter({ hasText: 'bob@example.com' })
    await row.getByText('Approver').waitFor()
    assert.equal(await page.getByRole('row').filter({ hasText: EMAIL }).count(), 0)
    await row.getByRole('button', { name: 'Role of bob@example.com' }).click()
    await page.getByRole('radio', { name: /^Admin/ }).check()
    await page.getByRole('dialog').getByRole('button', { name: 'Change role' }).click()
    await row.getByText('Admin').waitFor()
    await row.getByRole('button', { name: 'Remove bob@example.com' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await row.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Every workspace' }).click()
    await page.waitForURL('**/people?scope=everywhere')
    const me = page.getByRole('row').filter({ hasText: EMAIL })
    await me.getByText('you', { exact: true }).waitFor()
    await me.getByRole('button', { name: /^Remove/ }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page
      .getByRole('alert')
      .getByText(/last owner/i)
      .waitFor()
    await close()
  })

  test('an operator token is made, works, and is revoked', async () => {
    const { page, close } = await tacho.open(settings('/tokens'))
    await page.getByRole('button', { name: 'New token' }).waitFor()
    await page.keyboard.press('n')
    await page.keyboard.type('deploy script')
    await page.keyboard.press('Enter')
    const text =
      (await page.getByRole('dialog', { name: 'The new token' }).getByLabel('Operator token').textContent()) ?? ''
    const asToken = () => tacho.service.operator('/me', { headers: { authorization: `Bearer ${text}` } })
    assert.equal((await asToken()).status, 200)
    await page.getByRole('button', { name: 'I have it' }).click()
    const row = page.getByRole('row').filter({ hasText: 'deploy script' })
    await row.getByText('Viewer').waitFor()
    await row.getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await row.getByText('Revoked').waitFor()
    assert.equal((await asToken()).status, 401)
    await close()
  })

  test('a webhook is made, tested, sent again, changed, disabled and removed', async () => {
    const { port } = receiver.address() as AddressInfo
    const { page, close } = await tacho.open(settings('/webhooks'))
    await page.getByRole('heading', { name: 'No webhook yet' }).waitFor()
    await page.getByRole('button', { name: 'New webhook' }).click()
    await page.getByRole('radio', { name: /^PagerDuty/ }).waitFor()
    await assertLooks(page, 'new webhook')
    // The address determines the format until the person chooses one.
    await page.getByLabel('Address').fill('https://hooks.slack.com/services/T/B/X')
    await page.getByRole('radio', { name: /^Slack/, checked: true }).waitFor()
    await page.getByLabel('Address').fill('https://events.pagerduty.com/v2/enqueue')
    await page.getByRole('radio', { name: /^PagerDuty/, checked: true }).waitFor()
    await page.getByLabel('Address').fill(`http://127.0.0.1:${port}/hook`)
    await page.getByRole('checkbox', { name: /^issue.opened/ }).uncheck()
    await page.getByRole('button', { name: 'Create webhook' }).click()
    await page
      .getByRole('dialog')
      .getByText(/^whsec_/)
      .waitFor()
    await page.getByRole('button', { name: 'I have it' }).click()
    await page.getByRole('row').filter({ hasText: '/hook' }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/settings/webhooks/*')
    await page.getByText('No message yet.').waitFor()
    await page.getByRole('button', { name: 'Send a test' }).click()
    const deliveries = page.getByRole('table', { name: 'Deliveries' })
    await deliveries.getByText('Delivered').waitFor()
    await deliveries.getByText('204').waitFor()
    assert.deepEqual(received, ['/hook'])
    await deliveries.getByRole('button', { name: /again/ }).click()
    await eventually(() => received.length === 2, 'the message arrives again')
    assert.deepEqual(received, ['/hook', '/hook'])
    await page.getByRole('button', { name: 'Change…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Address').fill(`http://127.0.0.1:${port}/moved`)
    assert.equal(await dialog.getByRole('checkbox', { name: /^issue.opened/ }).isChecked(), false)
    await dialog.getByRole('checkbox', { name: /^issue.opened/ }).check()
    await dialog.getByRole('checkbox', { name: /^approval.decided/ }).uncheck()
    await dialog.getByRole('button', { name: 'Change webhook' }).click()
    // Wait until the dialog is closed, because it contains the names of all messages.
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('heading', { name: '/moved' }).waitFor()
    await page.getByText('issue.opened', { exact: true }).waitFor()
    assert.equal(await page.getByText('approval.decided', { exact: true }).count(), 0)
    await page.getByRole('button', { name: 'Send a test' }).click()
    await eventually(() => received.length === 3, 'a message arrives at the new address')
    assert.equal(received[2], '/moved')
    await page.getByRole('button', { name: 'Disable' }).click()
    await page.getByRole('button', { name: 'Enable' }).waitFor()
    await page.getByRole('button', { name: 'New secret…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'New secret' }).click()
    await page
      .getByRole('dialog')
      .getByText(/^whsec_/)
      .waitFor()
    await page.getByRole('button', { name: 'I have it' }).click()
    await page.getByRole('button', { name: 'Remove…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.waitForURL('**/settings/webhooks')
    await page.getByRole('heading', { name: 'No webhook yet' }).waitFor()
    await close()
  })

  test('the audit log is filtered, and what it shows is saved as CSV and JSON', async () => {
    const path = `/environments/${tacho.service.environmentId}/keys`
    const made = await tacho.service.operator<{ id: string }>(path, {
      body: { name: '=1+1', scopes: ['usage:read'] },
    })
    const { page, close } = await tacho.open(settings('/audit'))
    await page.getByRole('row').filter({ hasText: made.body.id }).filter({ hasText: '127.0.0.1' }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('api_key.create')
    await page.waitForURL('**/audit?action=api_key.create')
    await page.getByRole('row').filter({ hasText: 'workspace.create' }).waitFor({ state: 'detached' })
    await page
      .getByLabel('Its id')
      .or(page.getByRole('searchbox', { name: 'Id' }))
      .fill(made.body.id)
    await page.waitForURL(`**targetId=${made.body.id}*`)
    await page.getByRole('row').nth(2).waitFor({ state: 'detached' })
    const saved = async (name: string) => {
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name, exact: true }).click(),
      ])
      assert.match(download.suggestedFilename(), /^audit-default\.(csv|json)$/)
      return readFileSync(await download.path(), 'utf8')
    }
    const [, line = ''] = (await saved('CSV')).split('\r\n')
    assert.match(line, new RegExp(`api_key\\.create,api_key,${made.body.id},.*,127\\.0\\.0\\.1,`))
    const [entry] = JSON.parse(await saved('JSON')) as { target: { id: string } }[]
    assert.equal(entry?.target.id, made.body.id)
    await close()
  })

  test('an admin says when running runs of the environment are stalled, and what they are closed as', async () => {
    const { page, close } = await tacho.open(settings('/environments'))
    await page.getByText('after 15 minutes without an event').waitFor()
    await page.getByRole('button', { name: 'Change…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Stalled runs in development' })
    await dialog.getByLabel('Minutes without an event').fill('60')
    await dialog.getByRole('radio', { name: /^They are closed as failed/ }).check()
    await dialog.getByRole('button', { name: 'Save' }).click()
    // Wait until the dialog is closed, because it has the same words as the page.
    await dialog.waitFor({ state: 'hidden' })
    await page.getByText('They are closed as failed').waitFor()
    const rule = await tacho.service.operator(`/environments/${tacho.service.environmentId}/stalled-rule`)
    assert.deepEqual(rule.body, { idleMinutes: 60, closeAs: 'FAILED', closeAfterMinutes: 60, source: 'environment' })
    await close()
  })

  test('the doctor lists its checks', async () => {
    const { page, close } = await tacho.open(settings('/doctor'))
    await page.getByRole('list', { name: 'Checks' }).getByText('clock', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Check again' }).click()
    await close()
  })

  test('an account: another session is ended, a second factor turned on and off, the password changed', async () => {
    const cleo = await newPerson(tacho.service, 'cleo@example.com', 'viewer', null)
    const other = openBrowser(tacho.service)
    await other.post('/sign-in', { email: 'cleo@example.com', password: PASSWORD })
    const { page, close } = await tacho.open(tacho.home, { as: cleo })
    await page.getByRole('button', { name: /^Account of/ }).click()
    await page.getByRole('button', { name: 'Your account' }).click()
    await page.waitForURL('**/settings/account')
    const sessions = page.getByRole('table', { name: 'Sessions' })
    await sessions.getByText('this one').waitFor()
    await sessions.getByRole('button', { name: /^End/ }).first().click()
    await sessions.getByRole('row').nth(2).waitFor({ state: 'detached' })
    assert.equal((await other.get('/me')).status, 401)

    await page.getByRole('button', { name: 'Turn on…' }).click()
    await page.getByLabel('Your password').fill(PASSWORD)
    await page.keyboard.press('Enter')
    const enrol = page.getByRole('dialog', { name: 'Your authenticator' })
    await enrol.getByRole('img').waitFor()
    const secret = (await enrol.getByLabel('Secret').textContent()) ?? ''
    await enrol.getByLabel(/^Code/).fill(codeOf(`otpauth://totp/t?secret=${secret}`))
    await page.keyboard.press('Enter')
    await page.getByText('On', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Turn off…' }).click()
    await page.getByLabel('Your password').fill('wrong wrong wrong')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByRole('alert').waitFor()
    await page.getByLabel('Your password').fill(PASSWORD)
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Turn on…' }).waitFor()

    await page.getByLabel('Present password').fill(PASSWORD)
    await page.getByLabel('New password').fill('another horse battery staple')
    await page.getByRole('button', { name: 'Change password' }).click()
    await page.getByText('✓ Changed.').waitFor()
    await close()
  })

  test('a viewer reads and is offered no act that would be refused', async () => {
    const viewer = await newPerson(tacho.service, 'viewer@example.com', 'viewer', null)
    const { page, close } = await tacho.open(settings('/api-keys'), { as: viewer })
    await page.getByRole('row').nth(1).waitFor()
    assert.equal(await page.getByRole('link', { name: /^(Operator tokens|Doctor)$/ }).count(), 0)
    const acts = page.getByRole('button', { name: /^(New|Revoke|Invite|Remove|Change|Role|Actions)/ })
    for (const section of ['API keys', 'Webhooks', 'Environments', 'People', 'Audit log']) {
      await page.getByRole('link', { name: section }).click()
      await page.getByRole('heading', { level: 1, name: section }).waitFor()
      assert.equal(await acts.count(), 0, section)
      await page.keyboard.press('n')
      assert.equal(await page.getByRole('dialog').count(), 0, section)
    }
    for (const section of ['/tokens', '/doctor', '/people?scope=everywhere', '/audit?scope=everywhere']) {
      await page.goto(settings(section))
      await page.getByRole('heading', { name: 'Your role does not allow this' }).waitFor()
    }
    await close()
  })

  test('the pages are accessible and fit, light, dark and on a phone', async () => {
    const { port } = receiver.address() as AddressInfo
    const hooks = `/environments/${tacho.service.environmentId}/webhooks`
    const made = await tacho.service.operator<{ id: string }>(hooks, {
      body: { url: `http://127.0.0.1:${port}/look`, description: HARM },
    })
    await tacho.service.operator(`${hooks}/${made.body.id}/test`, { method: 'POST' })
    const { page, close } = await tacho.open(settings())
    for (const section of [
      'api-keys',
      'webhooks',
      'environments',
      'people?scope=everywhere',
      'tokens?scope=everywhere',
      'audit',
      'account',
    ]) {
      await page.goto(settings(`/${section}`))
      await page.getByRole('row').nth(1).waitFor()
      await assertLooks(page, `settings ${section}`)
    }
    await page.goto(settings(`/webhooks/${made.body.id}`))
    await page.getByRole('row').nth(1).waitFor()
    await assertLooks(page, 'settings webhook')
    await page.goto(settings('/doctor'))
    await page.getByRole('list', { name: 'Checks' }).waitFor()
    await assertLooks(page, 'settings doctor')
    for (const [section, act] of [
      ['api-keys', 'New key'],
      ['webhooks', 'New webhook'],
      ['people?scope=everywhere', 'Invite a person'],
      ['tokens', 'New token'],
    ]) {
      await page.goto(settings(`/${section}`))
      await page.getByRole('button', { name: act ?? '' }).click()
      await page.getByRole('dialog').waitFor()
      await assertLooks(page, `settings dialog ${act}`)
    }
    await close()
  })
})
