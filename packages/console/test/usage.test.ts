/** Usage over time, and what is in force where. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, describe, test } from 'node:test'
import { configurationCalls } from '../../server/test/setup/configuration-service.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertFine, LOOKS, startConsole, type TestConsole } from './setup/console.ts'

const HOUR_MS = 3_600_000

describe('usage and rollout', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole()
  })
  after(() => tacho.close())

  test('usage is empty at first, then has lines and sums by agent and model, as a file too', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/usage`)
    await page.getByRole('heading', { name: 'Nothing was recorded in this period' }).waitFor()
    const called = (agent: string, model: string, cost: number, hours: number) =>
      event({
        runId: `${agent} ${hours}`,
        agentId: agent,
        agentName: agent,
        eventType: 'LLM_CALL',
        timestamp: Date.now() - hours * HOUR_MS,
        payload: { model, cost, usage: { promptTokens: 10, completionTokens: 5, totalTokens: 15 } },
      })
    await tacho.service.record([
      called('support', 'small', 0.5, 1),
      called('support', 'large', 1.25, 3),
      called('=cmd', 'large', 0.25, 30),
    ])
    await page.reload()
    const row = (name: string) => page.getByRole('table', { name: 'Sums' }).getByRole('row').filter({ hasText: name })
    await row('support').getByText('1.75').waitFor()
    await row('=cmd').getByText('0.25').waitFor()
    await page.getByRole('figure', { name: /^cost by agent/ }).waitFor()
    await page.getByLabel('By', { exact: true }).selectOption('by model')
    await row('large').getByText('1.50').waitFor()
    await page.getByLabel('Period').selectOption('Last 24 hours')
    await row('large').getByText('1.25').waitFor()
    await page.waitForURL(/usage\?by=model&since=24h$/)
    await page.getByLabel('Period').selectOption('Last year')
    await row('large').getByText('1.50').waitFor()
    assert.equal(await row('large').count(), 1)
    await page.goto(`${tacho.home}/usage`)
    const saving = page.waitForEvent('download')
    await page.getByRole('button', { name: 'CSV' }).click()
    const text = await readFile(await (await saving).path(), 'utf8')
    assert.match(text, /^time,agent,runs,completed,failed,cancelled,steps,tokens,cost,/)
    assert.match(text, /,support,1,0,0,0,1,15,1\.25,/)
    assert.match(text, /,'=cmd,1,0,0,0,1,15,0\.25,/)
    await page.getByLabel('Measure').selectOption('Model latency, p95')
    await page.getByRole('figure', { name: /^llm by agent/ }).waitFor()
    await page.getByLabel('Measure').selectOption('Runs by outcome')
    await page.getByText('Running').first().waitFor()
    await page.getByLabel('By', { exact: true }).selectOption('by prompt version')
    await page.getByRole('heading', { name: 'Nothing was recorded in this period' }).waitFor()
    await close()
  })

  test('a click at a moment opens the runs of that time', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/usage?since=24h`)
    const box = await page.locator('.plot .u-over').boundingBox()
    assert.ok(box)
    // The slot before the last one of 24.
    await page.mouse.click(box.x + (box.width * 22) / 23, box.y + 40)
    await page.waitForURL('**/runs?from=*')
    await page.getByRole('row').filter({ hasText: 'support 1' }).waitFor()
    assert.equal(await page.getByRole('row').filter({ hasText: 'support 3' }).count(), 0)
    await close()
  })

  test('the rollout shows what is in force in each environment, and the changes', async () => {
    const { newPolicy, deploy, promote, staging } = await configurationCalls(tacho.service)
    await newPolicy({ policyId: 'limit' })
    await deploy([['policy', 'limit', '1']])
    await promote({ from: tacho.service.environmentId }, staging)
    const { page, close } = await tacho.open(`${tacho.home}/rollout`)
    for (const name of ['development', 'staging']) {
      await page.getByRole('region', { name, exact: true }).getByText('version 1').waitFor()
    }
    await page.getByRole('region', { name: 'Changes in development' }).getByText('deployed by').waitFor()
    await page.getByRole('link', { name: 'limit' }).first().click()
    await page.waitForURL('**/policies/limit?show=deployments')
    await close()
  })

  for (const [look, options] of LOOKS) {
    test(`the pages are accessible and fit: ${look}`, async () => {
      const { page, close } = await tacho.open(`${tacho.home}/usage`, options)
      await page.getByRole('link', { name: 'support' }).waitFor()
      await page.locator('.plot canvas').waitFor()
      await assertFine(page, 'usage', look)
      await page.goto(`${tacho.home}/rollout`)
      await page.getByRole('link', { name: 'limit' }).first().waitFor()
      await assertFine(page, 'rollout', look)
      await close()
    })
  }
})
