/** Policies and prompts: written with help, tried on recorded calls, compared, deployed, promoted and rolled back. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { newPerson } from '../../server/test/http/people/browser.ts'
import { approvalCalls } from '../../server/test/setup/approval-service.ts'
import { issueRecord, openedIssue } from '../../server/test/setup/issue-service.ts'
import { configurationCalls, type ConfigurationCalls } from '../../server/test/setup/configuration-service.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, startConsole, type TestConsole } from './setup/console.ts'

describe('policies and prompts', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  let calls: ConfigurationCalls
  before(async () => {
    tacho = await startConsole()
    calls = await configurationCalls(tacho.service)
    const refunds = [50, 150, 250].map((amount) =>
      event({
        runId: `refund-${amount}`,
        eventType: 'TOOL_CALL',
        label: 'refund',
        payload: { toolName: 'refund', input: { amount }, output: 'ok' },
      }),
    )
    await tacho.service.record(refunds)
  })
  after(() => tacho.close())

  const condition = (page: Page) => page.getByRole('textbox', { name: 'Condition' })

  test('a policy is written with completion and explained faults, simulated, saved and deployed', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/policies`)
    await page.getByRole('heading', { name: 'No policies yet' }).waitFor()
    await page.getByRole('link', { name: 'New policy' }).click()
    const header = page.getByRole('banner').getByRole('link', { name: 'Policies' })
    await header.and(page.locator('.bg-hover')).first().waitFor()
    await page.getByLabel('Id').fill('Big Refunds!')
    await page.getByText(/^Use only lower-case letters/).waitFor()
    await page.getByLabel('Id').fill('refund-limit')
    await condition(page).click()
    await page.keyboard.type('tool.na')
    // Click instead of Enter: if Enter follows too quickly, the editor inserts a new line.
    await page.getByRole('option', { name: 'tool.name' }).click()
    await page.keyboard.type(' == "re')
    // Completion offers recorded names and fields.
    await page.getByRole('option', { name: 'refund' }).click()
    // Continue after the closing quotation mark.
    await page.keyboard.type(' && tool.input.am')
    await page.getByRole('option', { name: 'amount' }).click()
    await page.keyboard.type(' > ')
    await page.getByText(/^Line 1, column/).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Create' }).isDisabled(), true)
    await page.keyboard.type('100.0')
    await page.getByText('✓ The condition is valid.').waitFor()
    await page.getByRole('button', { name: 'Simulate' }).click()
    await page.getByText('It would have acted on 2 of 3 calls, in 2 runs.').waitFor()
    await page.getByRole('link', { name: 'refund-250' }).waitFor()
    await page.getByText('{"amount":250}').waitFor()
    await page.getByRole('button', { name: 'Create' }).click()
    // After saving, the page offers one next step and still shows the simulation.
    await page.waitForURL('**/policies/refund-limit?simulation=*')
    const life = page.getByRole('group', { name: 'Life of the policy' })
    await life.getByText('it would have acted on 2 of 3 calls. Next: deploy it to development and watch.').waitFor()
    await page.getByText('It would have acted on 2 of 3 calls, in 2 runs.').waitFor()
    await assertLooks(page, 'a new policy')
    await page
      .getByRole('button', { name: 'Deployments' })
      .or(page.getByRole('tab', { name: 'Deployments' }))
      .click()
    const here = page.getByRole('listitem').filter({ hasText: 'development' }).first()
    await here.getByText('not deployed').waitFor()
    await life.getByRole('button', { name: 'Deploy to development…' }).click()
    // The dialog shows the result of the simulation before the deployment.
    await page.getByRole('dialog').getByText('it would have acted on 2, in 2 runs.').waitFor()
    await page.getByRole('dialog').getByLabel('Note').fill('First limit')
    await page.getByRole('dialog').getByRole('button', { name: 'Deploy' }).click()
    await here.getByText('version 1').waitFor()
    await page.getByText('First limit').waitFor()
    await life.getByText('In force in development, deployed').waitFor()
    // The draft is kept while the person visits other pages.
    await page.goto(`${tacho.home}/policies`)
    await page.goto(`${tacho.home}/policies/refund-limit?show=deployments`)
    await here.getByRole('button', { name: 'Change…' }).click()
    await page.getByRole('dialog').getByText('it would have acted on 2, in 2 runs.').waitFor()
    await page.keyboard.press('Escape')
    const [policy] = (await calls.load()).body.policies
    assert.equal(policy?.condition, 'tool.name == "refund" && tool.input.amount > 100.0')
    await close()
  })

  test('a call that was seen becomes a policy, narrowed by what the call said and simulated', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/runs/refund-150`)
    await page.getByRole('list', { name: 'Timeline' }).getByRole('listitem').first().click()
    await page.getByRole('link', { name: 'New policy for calls like this' }).click()
    await condition(page).getByText('tool.name == "refund"').waitFor()
    await page.getByRole('button', { name: '&& tool.input.amount >= 150.0' }).click()
    await page.getByText('✓ The condition is valid.').waitFor()
    await assertLooks(page, 'a policy from a call')
    await page.getByRole('button', { name: 'Simulate' }).click()
    await page.getByText('It would have acted on 2 of 3 calls, in 2 runs.').waitFor()
    await close()
  })

  test('what a condition that cannot be evaluated counts as is shown and kept; held calls and wrong names are told', async () => {
    const held = { action: 'REQUIRE_APPROVAL', toolName: 'payout', toolCallId: 'call_1', input: { amount: 900 } }
    await tacho.service.record([
      event({
        runId: 'paid',
        eventType: 'TOOL_CALL',
        label: 'payout',
        payload: { toolName: 'payout', input: { amount: 20 }, output: 'ok' },
      }),
      event({ runId: 'held', eventType: 'POLICY_DECISION', label: 'payout', payload: held }),
    ])
    const limit = 'tool.name == "payout" && tool.input.amount > 500.0'
    await calls.newPolicy({
      policyId: 'payout-limit',
      condition: limit,
      severity: 'HIGH',
      action: 'REQUIRE_APPROVAL',
      onError: 'ignore',
    })
    const { page, close } = await tacho.open(`${tacho.home}/policies/payout-limit`)
    const onError = page.getByLabel('When it cannot be evaluated')
    assert.equal(await onError.inputValue(), 'ignore')
    await page.getByText('lets the call through without a word').waitFor()
    await page.getByRole('button', { name: 'Simulate' }).click()
    const states = page.getByRole('table', { name: 'What became of the calls' })
    await states.getByRole('row').filter({ hasText: 'Held for a person' }).getByText('1').first().waitFor()
    await page.getByText(/^It would ask 1 time a day, on average since \w+ \d+, \d\d:\d\d\.$/).waitFor()
    await assertLooks(page, 'a policy with its simulation')
    await page.getByLabel('What it is for').fill('Payouts')
    await page.getByRole('button', { name: 'Save version 2' }).click()
    await page.getByText('version 2', { exact: true }).first().waitFor()
    assert.equal(await onError.inputValue(), 'ignore')
    await onError.selectOption('act')
    await page.getByRole('button', { name: 'Save version 3' }).click()
    await page.getByText('version 3', { exact: true }).first().waitFor()
    await page.reload()
    await page.getByText('version 3', { exact: true }).first().waitFor()
    assert.equal(await onError.inputValue(), 'act')
    await page.getByRole('textbox', { name: 'Condition' }).click()
    await page.keyboard.press('Control+a')
    await page.keyboard.type('tool.name == "payout" && tool.input.amout > 500.0 ')
    await page.getByRole('button', { name: 'Simulate' }).click()
    await page.getByText(/amount is in 2 of 2/).waitFor()
    await close()
  })

  test('the page of a policy says what it asked, how that was answered, what it blocked, and where people contradict', async () => {
    await calls.newPolicy({ policyId: 'wire-limit', action: 'REQUIRE_APPROVAL' })
    await calls.deploy([['policy', 'wire-limit', '1']])
    const { ask, decide } = approvalCalls(tacho.service)
    const asked = async (change: Record<string, unknown> = {}) =>
      (await ask({ toolName: 'wire', policyId: 'wire-limit', ...change })).body.id
    const inputHash = 'cd'.repeat(32)
    await decide(await asked({ inputHash }), 'APPROVED')
    await decide(await asked({ inputHash }), 'REJECTED')
    const reason = 'policy "Wire" (its condition could not be evaluated: no such member)'
    await decide(await asked({ reason }), 'APPROVED')
    const blocked = issueRecord({
      detectionType: 'TOOL_BLOCKED',
      policyId: 'wire-limit',
      payload: { toolName: 'wire', reasonCode: 'approval_rejected' },
    })
    await openedIssue(tacho.service, blocked)
    const { page, close } = await tacho.open(`${tacho.home}/policies/wire-limit`)
    const life = page.getByRole('group', { name: 'Life of the policy' })
    await life
      .getByText(/^In 7 days it asked 3 times: 2 approved, 1 rejected, 0 expired undecided; median wait/)
      .waitFor()
    await life.getByText('1 input was approved in one request and rejected in another').waitFor()
    await life.getByText('1 request only because the condition could not be evaluated').waitFor()
    await life.getByText('1 blocked call in 1 issue').waitFor()
    // A blocking policy shows the same about its condition.
    const block = (payload: object) =>
      event({
        runId: 'held back',
        eventType: 'POLICY_DECISION',
        label: 'BLOCK wire',
        payload: { action: 'BLOCK', toolName: 'wire', policyIds: ['wire-limit'], ...payload },
      })
    const failures = [{ policyId: 'wire-limit', message: 'no such member' }]
    await tacho.service.record([
      block({}),
      block({ failures }),
      block({ failures: [{ policyId: 'another', message: 'no such member' }] }),
      block({ policyIds: ['another', 'wire-limit'], failures }),
      block({ action: 'REQUIRE_APPROVAL', failures }),
    ])
    await page.reload()
    await life.getByText('In 7 days it blocked 3 calls.').waitFor()
    await life.getByText('1 call blocked only because the condition could not be evaluated').waitFor()
    const list = page.getByRole('region', { name: 'What it blocked' })
    await list.getByRole('link', { name: /^wire was blocked by wire-limit/ }).waitFor()
    await assertLooks(page, 'the life of a policy')
    await life.getByRole('link', { name: '1 rejected' }).click()
    await page.waitForURL(/show=history/)
    await close()
  })

  test('a new version shows its differences, is promoted and rolled back', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/policies/refund-limit`)
    await condition(page).click()
    await page.keyboard.press('Control+End')
    await page.keyboard.press('Backspace')
    await page.keyboard.type('5')
    await page.getByLabel('What changed, and why').fill('A bit more')
    await page.getByRole('button', { name: 'Save version 2' }).click()
    await page.getByText('version 2', { exact: true }).first().waitFor()
    await page.getByRole('button', { name: 'Versions' }).click()
    const differences = page.getByRole('region', { name: 'Differences' })
    await differences.getByText('tool.input.amount > 100.5').waitFor()
    await differences.getByText('tool.input.amount > 100.0').waitFor()
    await page.getByText('A bit more').waitFor()
    await page.getByRole('button', { name: 'Deployments' }).click()
    const at = (name: string) => page.getByRole('listitem').filter({ hasText: name }).first()
    await at('development').getByRole('button', { name: 'Change…' }).click()
    await page.getByRole('dialog').getByText('tool.input.amount > 100.5').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Deploy' }).click()
    await at('development').getByText('version 2').waitFor()
    await at('development').getByRole('button', { name: 'Promote…' }).click()
    await page
      .getByRole('dialog')
      .getByText(/^In force in development, deployed/)
      .waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Promote' }).click()
    await at('staging').getByText('version 2').waitFor()
    await at('staging').getByRole('button', { name: 'Roll back…' }).click()
    await page.getByRole('dialog').getByText('No other version was in force').waitFor()
    // No version was in force before the first one, so rolling back removes the policy.
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await at('staging').getByText('not deployed').waitFor()
    await at('development').getByRole('button', { name: 'Roll back…' }).click()
    await page
      .getByRole('dialog')
      .getByText(/goes back from version 2 to version 1/)
      .waitFor()
    // Another person rolls back in the meantime. A second rollback would remove the policy.
    const ofDevelopment = `/environments/${tacho.service.environmentId}/deployments`
    const items = [{ kind: 'policy', id: 'refund-limit' }]
    await tacho.service.operator(`${ofDevelopment}/rollback`, { method: 'POST', body: { items, note: null } })
    await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click()
    await page
      .getByRole('alert')
      .getByText('Expected version 2 of the policy refund-limit in force, but version 1 is.')
      .waitFor()
    assert.equal(await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).isDisabled(), true)
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    const again = [{ ...items[0], version: '2' }]
    await tacho.service.operator(ofDevelopment, { method: 'POST', body: { items: again, note: null } })
    // The page updates the versions in force by itself.
    await at('development').getByText('version 2').waitFor()
    await at('development').getByRole('button', { name: 'Roll back…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click()
    await at('development').getByText('newest is 2').waitFor()
    // The head shows the version in force too, because it is not the newest one.
    await page.getByText('version 1 in force here', { exact: true }).waitFor()
    await page.getByText('newest:', { exact: true }).waitFor()
    assert.equal((await calls.load()).body.policies[0]?.version, '1')
    await close()
  })

  test('a policy that a person took out of force says so, and nothing is asked of them next', async () => {
    const policyId = 'taken-out'
    await calls.newPolicy({ policyId })
    await calls.deploy([['policy', policyId, '1']])
    const items = [{ kind: 'policy', id: policyId, version: null }]
    const ofDevelopment = `/environments/${tacho.service.environmentId}/deployments`
    await tacho.service.operator(ofDevelopment, { method: 'POST', body: { items, note: null } })
    const { page, close } = await tacho.open(`${tacho.home}/policies/${policyId}`)
    const life = page.getByRole('group', { name: 'Life of the policy' })
    await life.getByText(/removed version 1 from development .*: it acts nowhere there\.$/).waitFor()
    await life.getByRole('button', { name: 'Deploy to development…' }).waitFor()
    assert.equal(await life.getByText('Next:').count(), 0)
    await close()
  })

  test('a prompt is written, changed and compared', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/new-prompt`)
    await page.getByLabel('Name').fill('greeting')
    await page.getByLabel('Text').fill('Hello {{customer}}.\nBe kind.')
    await page.getByText('Variables: customer').waitFor()
    await page.getByRole('button', { name: 'Create' }).click()
    await page.waitForURL('**/prompts/*?show=deployments')
    await page.getByRole('button', { name: 'Text' }).click()
    await page.getByLabel('Text').fill('Hello {{customer}}.\nBe brief.')
    await page.getByRole('button', { name: 'Save version 2' }).click()
    await page.getByText('version 2', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Versions' }).click()
    await page.getByText('Be brief.').waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('fund-lim')
    await page.getByRole('option', { name: 'refund-limit' }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL('**/policies/refund-limit')
    await page.goto(`${tacho.home}/prompts`)
    await page.getByRole('row').filter({ hasText: 'greeting' }).getByText('version 2').waitFor()
    await close()
  })

  test('a prompt shows what the runs of each version did, side by side', async () => {
    const { promptId, newest } = await calls.newPrompt('one')
    await calls.pushPrompt(promptId, 'two')
    const { body } = await tacho.service.operator<{ versionId: string }>(`${calls.prompts}/${promptId}/versions/2`)
    const { page, close } = await tacho.open(`${tacho.home}/prompts/${promptId}?show=results`)
    await page.getByRole('heading', { name: 'No run in development names a version yet' }).waitFor()
    const run = (runId: string, promptVersionId: string, status: string) => [
      event({ runId, eventType: 'LLM_CALL', payload: { promptVersionId, cost: 0.5 } }),
      event({ runId, eventType: 'SESSION_OUTCOME', payload: { status } }),
    ]
    // Its price is 2.50 for a million tokens.
    const unsent = { model: 'gpt-4o', usage: { promptTokens: 400_000 } }
    await tacho.service.record([
      ...run('v1 good', newest.versionId, 'COMPLETED'),
      ...run('v2 good', body.versionId, 'COMPLETED'),
      ...run('v2 bad', body.versionId, 'FAILED'),
      event({ runId: 'v2 bad', eventType: 'LLM_CALL', payload: { promptVersionId: body.versionId, ...unsent } }),
    ])
    await page.reload()
    await page
      .getByText(
        'No difference in failures that these numbers can show (p ≈ 1): Version 2 failed in 1 of 2 ended runs (50 %, likely 9 to 91 %), ' +
          'and 0 of 1 (0 %, likely 0 to 79 %) of version 1. About 8 runs of each would show a difference of this size.',
      )
      .waitFor()
    const row = page
      .getByRole('table', { name: 'Results by version' })
      .getByRole('row')
      .filter({ hasText: 'version 2' })
    await row.getByText('1 (50 %)').first().waitFor()
    // The name of the version stays readable, even if the columns leave little room.
    await page.setViewportSize({ width: 700, height: 800 })
    const name = await row.getByRole('cell').first().boundingBox()
    assert.ok(name && name.width > 100, `the version has ${name?.width} pixels`)
    // The mean is over the runs with a known cost. The recorded and estimated parts are over all runs.
    await row.getByTitle(/^\$1\.00 recorded, \$1\.00 estimated with the prices of genai-prices/).waitFor()
    await close()
  })

  test('after a roll back, the text of a prompt is that in force, and what failed more often is not offered in silence', async () => {
    const { promptId, newest } = await calls.newPrompt('Take your time.')
    await calls.pushPrompt(promptId, 'Be quick.')
    const { body } = await tacho.service.operator<{ versionId: string }>(`${calls.prompts}/${promptId}/versions/2`)
    for (const version of ['1', '2']) await calls.deploy([['prompt', promptId, version]])
    await calls.rollBack([['prompt', promptId]])
    const runs = (name: string, promptVersionId: string, failed: number) =>
      Array.from({ length: 20 }, (_, n) => [
        event({ runId: `${name} ${n}`, eventType: 'LLM_CALL', payload: { promptVersionId } }),
        event({
          runId: `${name} ${n}`,
          eventType: 'SESSION_OUTCOME',
          payload: { status: n < failed ? 'FAILED' : 'COMPLETED' },
        }),
      ]).flat()
    await tacho.service.record(runs('calm', newest.versionId, 1))
    await tacho.service.record(runs('quick', body.versionId, 15))
    const { page, close } = await tacho.open(`${tacho.home}/prompts/${promptId}`)
    const text = page.getByLabel('Text')
    await page.getByText('This is version 1, in force in development. The newest is version 2.').waitFor()
    assert.equal(await text.inputValue(), 'Take your time.')
    await page.getByText('v2 failed more often than v1, beyond chance.').waitFor()
    await assertLooks(page, 'a prompt after a roll back')
    await page.getByRole('button', { name: 'Show version 2' }).click()
    await page.getByText('This is version 2, the newest. In force in development is version 1.').waitFor()
    assert.equal(await text.inputValue(), 'Be quick.')
    // The draft starts from the text in force, and becomes the version after the newest.
    await page.getByRole('button', { name: 'Show version 1' }).click()
    await text.fill('Take your time, and be kind.')
    await page.getByRole('button', { name: 'Save version 3' }).click()
    await page.getByText('This is version 3, the newest. In force in development is version 1.').waitFor()
    assert.equal(await text.inputValue(), 'Take your time, and be kind.')
    await close()
  })

  test('a prompt is renamed, archived and restored; a policy in force is not archived', async () => {
    const { promptId } = await calls.newPrompt('Be brief.')
    const { page, close } = await tacho.open(`${tacho.home}/prompts/${promptId}`)
    const act = async (name: string) => {
      await page.getByRole('button', { name: 'More' }).click()
      await page.getByRole('button', { name, exact: true }).click()
    }
    await act('Rename…')
    await page.getByRole('textbox', { name: 'Name' }).fill('brief')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'brief' }).waitFor()
    await act('Archive…')
    await page.getByRole('dialog').getByRole('button', { name: 'Archive' }).click()
    await page.getByText('Archived', { exact: true }).waitFor()
    await page.getByRole('link', { name: '‹ Prompts' }).click()
    await page.getByRole('button', { name: 'Show archived' }).waitFor()
    await page.getByRole('link', { name: 'brief' }).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Show archived' }).click()
    await page.getByRole('row').filter({ hasText: 'brief' }).getByText('Archived').waitFor()
    await assertLooks(page, 'prompts with an archived one')
    await page.getByRole('link', { name: 'brief' }).click()
    await page.getByRole('button', { name: 'Restore' }).click()
    await page.getByText('Archived', { exact: true }).waitFor({ state: 'detached' })
    await page.goto(`${tacho.home}/policies/refund-limit`)
    await act('Archive…')
    await page.getByRole('dialog').getByRole('button', { name: 'Archive' }).click()
    await page
      .getByRole('alert')
      .getByText(/development/)
      .waitFor()
    await close()
  })

  test('a viewer reads everything and is offered nothing to change', async () => {
    const viewer = await newPerson(tacho.service, 'viewer@example.com', 'viewer', null)
    const { page, close } = await tacho.open(`${tacho.home}/policies/refund-limit`, { as: viewer })
    await page.getByText('An admin of this workspace can simulate a policy.').waitFor()
    assert.equal(await page.getByRole('button', { name: /^(Simulate|Save|More)/ }).count(), 0)
    await page.getByRole('button', { name: 'Deployments' }).click()
    await page.getByText('First limit').waitFor()
    assert.equal(await page.getByRole('button', { name: /^(Deploy…|Change…|Promote…|Roll back…)$/ }).count(), 0)
    await page.goto(`${tacho.home}/new-policy`)
    await page.getByRole('heading', { name: 'Your role does not allow this' }).waitFor()
    await close()
  })

  test('the pages are accessible and fit, light, dark and on a phone', async () => {
    const { policyId } = await calls.newPolicy({ policyId: 'looks' })
    await calls.pushPolicy(policyId, 'tool.name == "mail"')
    await calls.deploy([['policy', policyId, '1']])
    const { promptId } = await calls.newPrompt('Be kind, {{name}}.')
    const { page, close } = await tacho.open(`${tacho.home}/policies`)
    await page.getByRole('row').filter({ hasText: policyId }).getByText('development: 1').waitFor()
    await assertLooks(page, 'policies')
    await page.goto(`${tacho.home}/policies/${policyId}`)
    await page.getByText('✓ The condition is valid.').waitFor()
    await page.getByRole('button', { name: 'Simulate' }).click()
    await page.getByText(/^It would/).waitFor()
    await assertLooks(page, 'policy')
    await page.goto(`${tacho.home}/policies/${policyId}?show=versions`)
    await page.getByRole('region', { name: 'Differences' }).getByText('mail').waitFor()
    await assertLooks(page, 'policy versions')
    await page.goto(`${tacho.home}/policies/${policyId}?show=deployments`)
    await page.getByText('newest is 2').waitFor()
    await assertLooks(page, 'policy deployments')
    await page.goto(`${tacho.home}/prompts/${promptId}`)
    await page.getByText('Variables: name').waitFor()
    await assertLooks(page, 'prompt')
    await close()
  })
})
