/** Two runs, step by step. */
import { after, before, describe, test } from 'node:test'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, startConsole, type TestConsole } from './setup/console.ts'

describe('comparing runs', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole()
    const start = Date.now() - 60_000
    const steps = (runId: string, list: [label: string, input: unknown, more?: object][]) =>
      list.map(([label, input, more], index) =>
        event({
          runId,
          eventType: 'TOOL_CALL',
          label,
          timestamp: start + index * 1_000,
          payload: { toolName: label, input, ...more },
        }),
      )
    await tacho.service.record([
      ...steps('good', [
        ['get_order', { id: 1 }, { output: 'paid', latency: 100 }],
        ['refund', { amount: 50 }],
      ]),
      ...steps('worse', [
        // As many bytes, another answer.
        ['get_order', { id: 1 }, { output: 'open', latency: 900 }],
        ['get_order', { id: 2 }],
        ['refund', { amount: 5000 }],
      ]),
    ])
  })
  after(() => tacho.close())

  test('by keyboard from a run: steps are aligned, and differences stand out', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/runs/good`)
    await page.getByRole('list', { name: 'Timeline' }).getByRole('listitem').first().waitFor()
    await page.keyboard.press('x')
    await page.getByLabel('Beginning of a run id').fill('wor')
    await page.getByRole('radio', { name: 'worse' }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL('**/compare?a=good&b=worse')
    await page.getByText('1 step in one run only.').waitFor()
    const steps = page.getByRole('list', { name: 'Steps' })
    await steps.getByRole('button').filter({ hasText: 'only in the second' }).waitFor()
    await steps.getByRole('button').filter({ hasText: '≠ output · +800 ms' }).waitFor()
    await steps.getByRole('button').filter({ hasText: '≠ input' }).click()
    await steps.getByText('5000', { exact: true }).waitFor()
    await steps.getByText('50', { exact: true }).waitFor()
    await close()
  })

  test('the page is accessible and fits, light, dark and on a phone', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/compare?a=good&b=worse`)
    const step = page.getByRole('list', { name: 'Steps' }).getByRole('button').filter({ hasText: '≠ input' })
    await step.click()
    await page.getByText('5000', { exact: true }).waitFor()
    await assertLooks(page, 'compare')
    await close()
  })
})
