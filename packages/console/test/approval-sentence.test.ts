/** An approval is shown as a sentence, with the user's words, the origin of each value, and buttons that name their effect. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { inputHash as hashOf } from '../../policy/src/input/input-hash.ts'
import { approvalCalls, CLIENT, type ApprovalCalls } from '../../server/test/setup/approval-service.ts'
import { configurationCalls, type ConfigurationCalls } from '../../server/test/setup/configuration-service.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, PHONE, startConsole, type TestConsole } from './setup/console.ts'

const REFUND = { order_id: 'A-74932', item: 'road bike', amount: 917, currency: 'EUR', iban: 'DE89' }

describe('a request as a sentence', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  let calls: ApprovalCalls
  let configuration: ConfigurationCalls
  before(async () => {
    tacho = await startConsole()
    calls = approvalCalls(tacho.service)
    configuration = await configurationCalls(tacho.service)
    await configuration.newPolicy({ policyId: 'limit', action: 'REQUIRE_APPROVAL' })
    await configuration.newPolicy({ policyId: 'two', action: 'REQUIRE_APPROVAL', approvers: 2 })
    await configuration.deploy([
      ['policy', 'limit', '1'],
      ['policy', 'two', '1'],
    ])
  })
  after(() => tacho.close())

  const pane = (page: Page) => page.getByRole('article')

  async function ask(runId: string, policyId = 'limit', input: object = REFUND): Promise<string> {
    const toolName = 'refund_payment'
    const inputHash = hashOf(toolName, input)
    const { body } = await calls.ask({ runId, toolName, inputHash, agentId: 'shop', policyId, policyVersion: '1' })
    const decided = {
      action: 'REQUIRE_APPROVAL',
      toolName,
      inputHash,
      approvalId: body.id,
      input,
      policyVersions: { [policyId]: '1' },
    }
    const output = { id: 'A-74932', total: 917, currency: 'EUR', item: 'road bike' }
    const at = (ago: number) => ({ runId, agentId: 'shop', clientId: CLIENT, timestamp: Date.now() - ago })
    await tacho.service.record([
      event({ ...at(3_000), eventType: 'USER_INPUT', label: 'user', payload: { text: 'I want my 917 back' } }),
      event({ ...at(2_000), eventType: 'TOOL_CALL', label: 'get_order', payload: { toolName: 'get_order', output } }),
      event({ ...at(1_000), eventType: 'POLICY_DECISION', label: toolName, payload: decided }),
    ])
    return body.id
  }

  /** Controls that are too small for a finger: below 24 px, and not enlarged by a label or a row. */
  const tooSmall = (page: Page) =>
    page.locator('a, button, input, select, summary').evaluateAll((all) =>
      all.flatMap((each) => {
        const isRow = getComputedStyle(each, '::after').position === 'absolute'
        const { width, height } = (each.closest('label') ?? each).getBoundingClientRect()
        const isSeen = width > 0 && !each.closest('.sr-only')
        return isSeen && !isRow && (width < 24 || height < 24) ? [`${each.textContent} ${width} × ${height}`] : []
      }),
    )

  test('the row, the head, the title and the button say it; values say where they come from; the hash is under Details', async () => {
    const id = await ask('sentence')
    const { page, close } = await tacho.open(`${tacho.home}/approvals/${id}`)
    const words = 'Refund payment 917 EUR · A-74932 · DE89 · road bike'
    await pane(page).getByRole('heading', { name: words }).waitFor()
    await page.getByRole('list', { name: 'Waiting approvals' }).getByRole('link', { name: words }).waitFor()
    await page.waitForFunction((text) => document.title.includes(text), words)
    const rows = pane(page).getByRole('region', { name: 'Input', exact: true }).getByRole('row')
    const row = async (name: string) => (await rows.filter({ hasText: name }).innerText()).replaceAll(/\s+/g, ' ')
    assert.equal(
      await row('amount'),
      'amount ✓ 917 , as the agent asked equals total of get_order, step 2; said by the user, step 1',
    )
    assert.equal(await row('iban'), 'iban DE89 , as the agent asked ! nowhere in this run')
    await pane(page).getByRole('region', { name: 'What the user wrote' }).getByText('I want my 917 back').waitFor()
    const details = pane(page).locator('details')
    assert.equal(await details.getByText('"order_id"').isVisible(), false)
    await details.getByText('Details', { exact: true }).click()
    await details.getByText('"order_id"').waitFor()
    await details.getByText(hashOf('refund_payment', REFUND)).waitFor()
    await assertLooks(page, 'approval as a sentence')
    const button = page.getByRole('button', { name: 'Approve' })
    assert.equal(await button.textContent(), 'Approve 917 EUR')
    await page.getByLabel('And also allow').selectOption('tool')
    assert.equal(await button.textContent(), 'Approve 917 EUR and 20 calls to come')
    await pane(page).getByRole('link', { name: 'equals total of get_order, step 2' }).click()
    await page.waitForURL('**/runs/sentence?step=*')
    await close()
  })

  test('a phone shows the amount and the buttons without scrolling, and nothing is too small for a finger', async () => {
    const id = await ask('phone')
    const { page, close } = await tacho.open(`${tacho.home}/approvals/${id}`, {
      ...PHONE,
      hasTouch: true,
      isMobile: true,
    })
    const amount = await pane(page).getByRole('heading').first().getByText('917 EUR').boundingBox()
    const button = await page.getByRole('button', { name: 'Approve 917 EUR' }).boundingBox()
    assert.ok(amount && amount.y > 0 && amount.y < 200, JSON.stringify(amount))
    assert.ok(button && button.y + button.height <= 844 && button.height >= 44, JSON.stringify(button))
    await pane(page).getByText('This is the first.').or(pane(page).getByText('No decided request')).first().waitFor()
    assert.deepEqual(await tooSmall(page), [])
    await page.goto(`${tacho.home}/approvals`)
    await page.getByRole('listitem').first().waitFor()
    assert.deepEqual(await tooSmall(page), [])
    await close()
  })

  test('of two people, the button says which one decides; Arabic beside an amount moves nothing', async () => {
    const item = String.fromCodePoint(0x062f, 0x0631, 0x0627, 0x062c, 0x0629)
    const id = await ask('two', 'two', { order_id: `${item} 12`, amount: 5 })
    const { page, close } = await tacho.open(`${tacho.home}/approvals/${id}`)
    const button = page.getByRole('button', { name: 'Approve' })
    await button.waitFor()
    assert.equal(await button.textContent(), 'Approve 5 (1 of 2)')
    const heading = pane(page).getByRole('heading').first()
    const left = async (text: string) => (await heading.getByText(text, { exact: true }).boundingBox())?.x ?? 0
    assert.ok((await left('5')) < (await left(`${item} 12`)))
    await close()
  })

  test('the form of a policy takes a template, says what is wrong with it, and its requests read so', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/new-policy`)
    await page.getByLabel('Id', { exact: true }).fill('templated')
    await page.getByRole('textbox', { name: 'Condition' }).fill('tool.name == "refund_payment"')
    const template = page.getByLabel('How a request reads')
    await template.fill('Back **{amount')
    await page.getByText('It cannot be saved: a brace has no other one').waitFor()
    await template.fill('Back **{amount} {currency}** for {order_id}, {none}')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.waitForURL('**/policies/templated*')
    const id = await ask('templated', 'templated')
    await page.goto(`${tacho.home}/approvals/${id}`)
    await pane(page).getByRole('heading', { name: 'Back 917 EUR for A-74932, (no none)' }).waitFor()
    await page.getByRole('button', { name: 'Approve 917 EUR' }).waitFor()
    await close()
  })
})
