/** What an environment costs and keeps: prices, alerts and budgets, retention, erasure, export. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { newPerson, type Browser as Person } from '../../server/test/http/operator/browser.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, HARM, startConsole, type TestConsole } from './setup/console.ts'

describe('costs and data', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  let viewer: Person
  before(async () => {
    tacho = await startConsole()
    viewer = await newPerson(tacho.service, 'viewer@example.com', 'viewer', null)
    const call = (eventId: string, model: string) =>
      event({
        eventId,
        runId: 'estimated',
        eventType: 'LLM_CALL',
        label: `chat ${model}`,
        payload: { model, usage: { promptTokens: 1_000_000 } },
      })
    await tacho.service.record([call('known', 'gpt-4o'), call('unknown', 'our-llama')])
  })
  after(() => tacho.close())

  const settings = (section: string) => `${tacho.home}/settings/${section}`

  test('a missing cost is estimated and marked, with its price table; a model without a price gets one', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/runs/estimated?step=known`)
    await page.getByText(/^cost ≈ 2\.50, estimated with genai-prices [\d.]+$/).waitFor()
    const inspector = page.getByRole('complementary', { name: 'Step' })
    await inspector.getByText(/cost ≈ 2\.50, estimated with genai-prices/).waitFor()
    await page.keyboard.press('j')
    await inspector.getByText(/cost unknown: this model has no price/).waitFor()
    await page.goto(`${tacho.home}/runs`)
    await page
      .getByRole('row')
      .filter({ hasText: 'estimated' })
      .getByTitle(/genai-prices.*1 call without/)
      .waitFor()
    await page.goto(`${tacho.home}/usage`)
    await page.getByText(/Estimated with the prices of genai-prices .* 1 call without a cost/).waitFor()
    await page.getByRole('link', { name: 'Prices' }).click()
    await page.getByRole('button', { name: 'Set a price for our-llama' }).click()
    await page.getByRole('dialog').getByLabel('Input').fill('0.5')
    await page.getByRole('dialog').getByLabel('Output').fill('1')
    await assertLooks(page, 'price dialog')
    await page.keyboard.press('Enter')
    const row = page.getByRole('table', { name: 'Prices for a million tokens' }).getByRole('row')
    await row.filter({ hasText: 'our-llama' }).getByText('0.5', { exact: true }).waitFor()
    await page.getByText('Every model that was called has a price').waitFor()
    await assertLooks(page, 'settings prices')
    await page.goto(`${tacho.home}/runs/estimated`)
    await page.getByText(/^cost ≈ 3\.00, estimated with/).waitFor()
    await page.goto(settings('prices'))
    await row.getByRole('button', { name: 'Remove our-llama' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('button', { name: 'Set a price for our-llama' }).waitFor()
    await close()
  })

  test('an alert fires, a budget shows what is used, and both are deleted', async () => {
    const { page, close } = await tacho.open(settings('alerts'))
    await page.getByRole('heading', { name: 'development has no alert yet' }).waitFor()
    await page.keyboard.press('n')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill(`High cost ${HARM}`)
    await dialog.getByLabel('Kind').selectOption('High cost')
    await dialog.getByLabel('Cost').fill('1')
    await dialog.getByLabel('Holds for').fill('0')
    await assertLooks(page, 'alert dialog')
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'New alert' }).click()
    await dialog.getByLabel('Name').fill('This month')
    await dialog.getByLabel('Kind').selectOption('Budget')
    await dialog.getByLabel('Amount').fill('3')
    await page.keyboard.press('Enter')
    const row = (name: string) => page.getByRole('table', { name: 'Alerts' }).getByRole('row').filter({ hasText: name })
    await row('High cost').getByText('Firing').waitFor()
    await row('This month').getByText('83 % used').waitFor()
    await row('This month').getByText('2.50 of 3.00').waitFor()
    assert.equal(await page.locator('img, #root script').count(), 0)
    await assertLooks(page, 'settings alerts')
    await page.goto(tacho.home)
    const urgent = page.getByRole('list', { name: 'Alerts' })
    await urgent.getByText('High cost').waitFor()
    await assertLooks(page, 'overview with alerts')
    await urgent.getByRole('link', { name: 'This month' }).click()
    for (const name of ['High cost', 'This month']) {
      await row(name)
        .getByRole('button', { name: /^Delete/ })
        .click()
      await dialog.getByRole('button', { name: 'Delete' }).click()
      await row(name).waitFor({ state: 'detached' })
    }
    await close()
  })

  test('a viewer is offered no act that would be refused', async () => {
    const { page, close } = await tacho.open(settings('prices'), { as: viewer })
    await page.getByRole('table', { name: 'Models without a price' }).getByText('our-llama').waitFor()
    await page.getByRole('link', { name: 'Alerts' }).click()
    await page.getByText('An admin of this workspace can create one.').waitFor()
    await page.getByRole('link', { name: 'Prices' }).click()
    await page.getByRole('heading', { level: 1, name: 'Prices' }).waitFor()
    assert.equal(await page.getByRole('button', { name: /^(New|Set|Change|Delete|Remove)/ }).count(), 0)
    await close()
  })
})
