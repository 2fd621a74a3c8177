/** Settings: what people and programs may do here, and who changed it. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { ApiKeyPage } from '@tacho/contract/operator/api-key.ts'
import { newPerson } from '../../server/test/http/operator/browser.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertFine, HARM, LOOKS, startConsole, type TestConsole } from './setup/console.ts'

describe('settings', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole()
  })
  after(() => tacho.close())

  const settings = (section = '') => `${tacho.home}/settings${section}`
  const keys = async () =>
    (await tacho.service.operator<ApiKeyPage>(`/environments/${tacho.service.environmentId}/keys`)).body.items

  test('a key is made by keyboard for a purpose, shown once, works, and is revoked', async () => {
    const { page, close } = await tacho.open()
    await page.getByRole('link', { name: 'Settings' }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press(',')
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
    await shown.getByRole('button', { name: 'I have it' }).click()
    assert.equal(await page.getByText(key).count(), 0)
    const row = page.getByRole('row').filter({ hasText: 'billing agent' })
    await row.getByText('50/s').waitFor()
    await row.getByText('Active').waitFor()
    const made = (await keys()).find(({ name }) => name === 'billing agent')
    assert.deepEqual(made?.scopes, ['events:write', 'config:read', 'policies:read'])
    assert.ok(Math.abs(Date.parse(made?.expiresAt ?? '') - Date.now() - 30 * 86_400_000) < 3_600_000)
    await row.getByRole('button', { name: 'Revoke billing agent' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await row.getByText('Revoked').waitFor()
    assert.equal((await tacho.service.record([event()], key)).status, 401)
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

  test('a viewer reads the keys and is offered no act', async () => {
    const viewer = await newPerson(tacho.service, 'viewer@example.com', 'viewer', null)
    const { page, close } = await tacho.open(settings('/api-keys'), { as: viewer })
    await page.getByRole('row').nth(1).waitFor()
    assert.equal(await page.getByRole('button', { name: /^(New key|Revoke)/ }).count(), 0)
    await page.keyboard.press('n')
    assert.equal(await page.getByRole('dialog').count(), 0)
    await close()
  })

  for (const [look, options] of LOOKS) {
    test(`the pages are accessible and fit: ${look}`, async () => {
      const { page, close } = await tacho.open(settings('/api-keys'), options)
      await page.getByRole('row').nth(1).waitFor()
      await assertFine(page, 'settings api keys', look)
      await page.getByRole('button', { name: 'New key' }).click()
      await page.getByRole('radio', { name: /^Chosen scopes/ }).check()
      await assertFine(page, 'settings new api key', look)
      await close()
    })
  }
})
