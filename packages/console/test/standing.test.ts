/** Standing approvals, approvals by two people, statistics of requests, and a prompt with a share. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { inputHash as hashOf } from '../../policy/src/input/input-hash.ts'
import { newPerson } from '../../server/test/http/people/browser.ts'
import { approvalCalls, CLIENT, type ApprovalCalls } from '../../server/test/setup/approval-service.ts'
import { configurationCalls, type ConfigurationCalls } from '../../server/test/setup/configuration-service.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, startConsole, type TestConsole } from './setup/console.ts'

describe('standing approvals, two people, shares', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  let calls: ApprovalCalls
  let configuration: ConfigurationCalls
  before(async () => {
    tacho = await startConsole()
    calls = approvalCalls(tacho.service)
    configuration = await configurationCalls(tacho.service)
    const condition = 'tool.name == "transfer"'
    for (const policy of [
      { policyId: 'transfer-limit', name: 'Transfer limit' },
      { policyId: 'large-transfers', approvers: 2 },
    ]) {
      await configuration.newPolicy({ ...policy, condition, action: 'REQUIRE_APPROVAL' })
    }
  })
  after(() => tacho.close())

  async function ask(policyId: string, runId: string, amount: number) {
    const input = { to: 'ana.silva@example.com', amount }
    const inputHash = hashOf('transfer', input)
    const asked = { runId, agentId: 'payer', policyId, policyVersion: '1', inputHash, reason: 'A new account' }
    const { id, status } = (await calls.ask(asked)).body
    if (status !== 'PENDING') return { id, status }
    const payload = {
      action: 'REQUIRE_APPROVAL',
      toolName: 'transfer',
      inputHash,
      approvalId: id,
      input,
      policyVersions: { [policyId]: '1' },
    }
    await tacho.service.record([
      event({ runId, agentId: 'payer', eventType: 'POLICY_DECISION', payload, clientId: CLIENT }),
    ])
    return { id, status }
  }

  test('a policy proposes the condition that asks least, says what it would have changed, and takes it as a draft', async () => {
    const policy = { policyId: 'least-asking', condition: 'tool.name == "transfer"', action: 'REQUIRE_APPROVAL' }
    await configuration.newPolicy(policy)
    await configuration.deploy([['policy', 'least-asking', '1']])
    for (const [amount, decision] of [
      [20, 'APPROVED'],
      [35, 'APPROVED'],
      [900, 'REJECTED'],
    ] as const) {
      const { id } = await ask('least-asking', `least-${amount}`, amount)
      assert.equal((await calls.decide(id, decision)).status, 200)
    }
    const { page, close } = await tacho.open(`${tacho.home}/policies/least-asking`)
    await page.getByRole('button', { name: 'Find the least-asking condition' }).click()
    const found = page.getByRole('region', { name: 'Least-asking condition' })
    await found.getByText(/Of 2 approved calls, it would not have asked about 2/).waitFor()
    await found.getByText(/still asks about all 1 rejected/).waitFor()
    await assertLooks(page, 'least-asking condition')
    await found.getByRole('button', { name: 'Use it in the draft' }).click()
    await page.getByRole('button', { name: 'Save version 2' }).waitFor()
    await page.getByText('has(tool.input.amount)').first().waitFor()
    await close()
    await configuration.deploy([['policy', 'least-asking', null]])
  })

  test('with an approval, calls to come are allowed by a condition; the tab lists it, counts its uses, and revokes it', async () => {
    await configuration.deploy([['policy', 'transfer-limit', '1']])
    const { id } = await ask('transfer-limit', 'first', 40)
    const { page, close } = await tacho.open(`${tacho.home}/approvals/${id}`)
    const form = page.getByRole('form', { name: 'Decision' })
    const also = form.getByLabel('And also allow')
    await also.selectOption('condition')
    const condition = form.getByRole('textbox', { name: 'Condition' })
    assert.equal(await condition.inputValue(), 'tool.input.to == "ana.silva@example.com" && tool.input.amount <= 40.0')
    await form.getByLabel('For how long').selectOption('480')
    await assertLooks(page, 'and also')
    await condition.fill('')
    await form.getByRole('button', { name: 'Approve' }).click()
    // The browser focuses the required field, and sends nothing.
    assert.equal(await condition.evaluate((field) => field === document.activeElement), true)
    await condition.fill('tool.input.amount > 100.0')
    await form.getByRole('button', { name: 'Approve' }).click()
    await page.getByText(/not true/).waitFor()
    await assertLooks(page, 'and also refused')
    await condition.fill('tool.input.amount < 100.0')
    await form.getByRole('button', { name: 'Approve' }).click()
    await page.getByText('Your decision counts: approved.').waitFor()
    const second = await ask('transfer-limit', 'second', 60)
    for (;;) if ((await calls.read(second.id, '?wait=5')).body.status === 'APPROVED') break
    await page.goto(`${tacho.home}/approvals?show=standing`)
    const standing = page.getByRole('region', { name: 'Standing approvals' })
    await standing.getByText('tool.input.amount < 100.0').waitFor()
    await standing.getByText('1 of 20 calls').waitFor()
    await page
      .getByRole('region', { name: 'How often people are asked' })
      .getByText('by standing approvals 1')
      .waitFor()
    await assertLooks(page, 'standing approvals')
    await page.goto(`${tacho.home}/approvals/${second.id}?show=standing`)
    await page
      .getByText(/standing approval/)
      .first()
      .waitFor()
    await assertLooks(page, 'approved by a standing approval')
    await page.goto(`${tacho.home}/approvals?show=standing`)
    await standing.getByRole('button', { name: 'Revoke' }).click()
    await standing.getByText('Revoked').waitFor()
    await close()
  })

  test('a request for two people says who was the first, and the second decides', async () => {
    await configuration.deploy([['policy', 'large-transfers', '1']])
    const { id } = await ask('large-transfers', 'large', 9_000)
    const { page, close } = await tacho.open(`${tacho.home}/approvals/${id}`)
    await page.getByText('Two people must approve this').waitFor()
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByText('Another person must approve it too.').waitFor()
    await assertLooks(page, 'approved by one of two')
    assert.equal(await page.getByRole('button', { name: 'Approve' }).count(), 0)
    await close()
    const ben = await newPerson(tacho.service, 'ben@example.com', 'approver', configuration.workspaceId)
    const second = await tacho.open(`${tacho.home}/approvals/${id}`, { as: ben })
    await second.page.getByRole('note').getByText('ada@example.com').waitFor()
    await assertLooks(second.page, 'the second of two')
    await second.page.getByRole('button', { name: 'Approve' }).click()
    await second.page.getByText('Your decision counts: approved.').waitFor()
    assert.equal((await calls.read(id)).body.status, 'APPROVED')
    await second.close()
  })

  test('a share of a prompt is shown on its page, and ends there', async () => {
    const { promptId, name } = await configuration.newPrompt('Be kind')
    await configuration.pushPrompt(promptId, 'Be brief')
    await configuration.deploy([['prompt', promptId, '1']])
    const items = [{ kind: 'prompt', id: promptId, version: '2', share: 10 }]
    const path = `/environments/${tacho.service.environmentId}/deployments`
    assert.equal((await tacho.service.operator(path, { body: { items } })).status, 200)
    const { page, close } = await tacho.open(`${tacho.home}/prompts/${promptId}?show=deployments`)
    const here = page.getByRole('listitem').filter({ hasText: 'development' }).first()
    await here.getByText('10 % of sessions').waitFor()
    await assertLooks(page, 'a share of a prompt')
    await here.getByRole('button', { name: 'End share…' }).click()
    await assertLooks(page, 'ending a share')
    await page.getByRole('dialog').getByRole('button', { name: 'End share' }).click()
    await page.getByText('share of version 2 ended').waitFor()
    await here.getByText('10 % of sessions').waitFor({ state: 'detached' })
    await page.goto(`${tacho.home}/prompts`)
    await page.getByText(name).waitFor()
    await close()
  })
})
