/** The page of an issue: its grouping, occurrences, earlier changes, and acts of people. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Issue } from '@tacho/contract/issues/issue.ts'
import { newPerson } from '../../server/test/http/people/browser.ts'
import { approvalCalls } from '../../server/test/setup/approval-service.ts'
import { configurationCalls } from '../../server/test/setup/configuration-service.ts'
import { openedIssue, reviewed, submit } from '../../server/test/setup/issue-service.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, EMAIL, HARM, startConsole, type TestConsole } from './setup/console.ts'
import { detection, readIssue } from './setup/issues.ts'

describe('the page of an issue', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole()
  })
  after(() => tacho.close())

  const issues = () => `${tacho.home}/issues`
  const read = (issue: Issue) => readIssue(tacho, issue)

  test('an issue explains itself: facts, occurrences with what was sent, the step, and what changed before', async () => {
    const { newPolicy, deploy } = await configurationCalls(tacho.service)
    await newPolicy({ policyId: 'refund-limit' })
    await deploy([['policy', 'refund-limit', '1']])
    const exception = { type: 'TimeoutError', message: 'no answer', causes: [{ type: 'OSError', message: 'refused' }] }
    const failed = { toolName: 'refund', error: 'TimeoutError: no answer', exception }
    await tacho.service.record([
      event({
        runId: 'run-1',
        eventId: 'step-1',
        agentId: 'refunder',
        label: 'Refund it',
        eventType: 'TOOL_CALL',
        payload: failed,
      }),
    ])
    const asked = await approvalCalls(tacho.service).ask({ toolName: 'refund' })
    const evidence = { decision: 'BLOCK', approvalId: asked.body.id }
    const issue = await openedIssue(
      tacho.service,
      detection('EXPLAINED', { eventId: 'step-1', evidence }),
      detection('EXPLAINED', { evidence }),
    )
    const { page, close } = await tacho.open(issues())
    await page.getByRole('row').filter({ hasText: 'explained' }).getByRole('link').click()
    await page.getByRole('heading', { level: 1, name: issue.title }).waitFor()
    const why = page.getByRole('region', { name: 'Why these are grouped' })
    for (const fact of ['explained', 'refund', 'over_limit']) await why.getByText(fact, { exact: true }).waitFor()
    const shown = page.getByRole('region', { name: 'Occurrence', exact: true })
    // The event of the newest occurrence was never recorded, so the page shows the client's report.
    await shown.getByText('1 of 2', { exact: true }).waitFor()
    await shown.getByRole('button', { name: 'Older' }).click()
    for (const said of ['TimeoutError: no answer', 'OSError: refused']) await shown.getByText(said).waitFor()
    const changes = page.getByRole('region', { name: 'What changed before' })
    await changes.getByText('deployed, version 1').waitFor()
    const testOfIssue = page.getByRole('region', { name: 'Make a test of it' })
    await testOfIssue.getByText(`tacho tape --from-issue ${issue.id} -o tapes`).waitFor()
    const checksum = 'ab12'.repeat(16)
    await page.getByLabel('Comment', { exact: true }).fill(`A test: the tape of the run run-1, checksum ${checksum}`)
    await page.getByRole('button', { name: 'Comment', exact: true }).click()
    await testOfIssue.getByText('Tape ab12ab12ab12 of run-1').waitFor()
    const occurrences = page.getByRole('region', { name: 'Occurrences' })
    await occurrences.getByRole('button', { name: 'Show what was reported' }).first().click()
    await occurrences.getByText('BLOCK').waitFor()
    const toApproval = occurrences.getByRole('link', { name: 'Open the approval' })
    if ((await toApproval.count()) === 0)
      await occurrences.getByRole('button', { name: 'Show what was reported' }).click()
    await toApproval.click()
    await page.waitForURL(`**/approvals/${evidence.approvalId}?show=history`)
    await page.getByRole('article', { name: 'Approval of refund' }).waitFor()
    await page.goBack()
    await page.getByRole('img', { name: '2 times in the last 14 days, 2 in the last 24 hours' }).waitFor()
    await occurrences.getByRole('link', { name: 'run-1' }).last().click()
    await page.waitForURL('**/runs/run-1?step=step-1')
    await page.getByRole('link', { name: /^Issue:/ }).click()
    await page.waitForURL(`**/issues/${issue.id}`)
    await close()
  })

  test('an occurrence shows message, input, the last five steps and the stack; j and k go through all', async () => {
    const start = Date.now() - 120_000
    const failure = (n: number) => ({
      toolName: 'charge',
      input: { order: `A-${n}` },
      error: `CardError: card ${n} refused`,
      exception: {
        type: 'CardError',
        message: `card ${n} refused`,
        stack: `CardError\n    at charge (card.ts:${n}0:1)`,
      },
    })
    for (const n of [1, 2, 3]) {
      const runId = `card-${n}`
      const steps = Array.from({ length: 12 }, (_, at) =>
        event({ runId, label: `step ${at + 1} of ${n}`, timestamp: start + n * 20_000 + at * 100 }),
      )
      const failed = event({
        runId,
        eventId: 'failed',
        agentId: 'payer',
        agentName: 'Payer',
        eventType: 'TOOL_CALL',
        label: 'charge',
        payload: failure(n),
        timestamp: start + n * 20_000 + 5_000,
      })
      const later = event({ runId, label: 'later', timestamp: start + n * 20_000 + 6_000 })
      await tacho.service.record([...steps, failed, later])
    }
    await reviewed(tacho.service)
    const { page, close } = await tacho.open(`${issues()}?type=tool_failed`)
    await page.getByRole('link', { name: /card … refused/ }).click()
    const shown = page.getByRole('region', { name: 'Occurrence', exact: true })
    await shown.getByText('1 of 3', { exact: true }).waitFor()
    await shown.getByText('CardError: card 3 refused', { exact: true }).waitFor()
    await shown.getByRole('group', { name: 'Input' }).getByText('A-3').waitFor()
    await shown.getByText('card.ts:30:1').waitFor()
    const before = shown.getByRole('region', { name: 'Steps before' }).getByRole('listitem')
    // The steps come with another request than the input.
    await before.filter({ hasText: 'charge' }).waitFor()
    assert.deepEqual(await before.locator('bdi').allTextContents(), [
      ...[8, 9, 10, 11, 12].map((at) => `step ${at} of 3`),
      'charge',
    ])
    await page.keyboard.press('j')
    await page.waitForURL(/\?occurrence=/)
    await shown.getByText('CardError: card 2 refused', { exact: true }).waitFor()
    await page.keyboard.press('j')
    await shown.getByText('CardError: card 1 refused', { exact: true }).waitFor()
    await shown.getByText('3 of 3', { exact: true }).waitFor()
    assert.equal(await shown.getByRole('button', { name: 'Older' }).isDisabled(), true)
    await page.reload()
    await shown.getByText('CardError: card 1 refused', { exact: true }).waitFor()
    await page.keyboard.press('k')
    await shown.getByText('2 of 3', { exact: true }).waitFor()
    await before.first().getByRole('button').click()
    await assertLooks(page, 'occurrence')
    await shown.getByRole('link', { name: 'Open in the run' }).click()
    await page.waitForURL('**/runs/card-2?step=failed')
    await close()
  })

  test('a page asks for the names of all agents at once, not for each occurrence', async () => {
    const agents = [1, 2, 3].map((n) => `agent ${n}`)
    await tacho.service.record(agents.map((id) => event({ runId: id, agentId: id, agentName: `Named ${id}` })))
    const issue = await openedIssue(tacho.service, ...agents.map((agentId) => detection('MANY', { agentId })))
    const { page, close } = await tacho.open(`${issues()}/${issue.id}`)
    const asked: string[] = []
    page.on('request', (request) => request.url().includes('/operator/v1/') && asked.push(request.url()))
    await page.reload()
    const occurrences = page.getByRole('region', { name: 'Occurrences' })
    for (const id of agents) await occurrences.getByText(`Named ${id}`).waitFor()
    // Count each address once, because live lists are read repeatedly.
    const paths = [...new Set(asked)].map((url) => new URL(url).pathname.split('/').slice(5).join('/'))
    assert.ok(!paths.includes('runs') && paths.length <= 20, `${paths.length}:\n${paths.join('\n')}`)
    await close()
  })

  test('by keyboard: found, assigned, commented, resolved, and marked when it comes back', async () => {
    const issue = await openedIssue(tacho.service, detection('KEYS', { runId: null }))
    const { page, close } = await tacho.open(issues())
    await page.getByRole('row').filter({ hasText: 'keys' }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('keys')
    await page.waitForURL('**/issues?q=keys')
    await page.getByRole('row').nth(2).waitFor({ state: 'detached' })
    await page.keyboard.press('Escape')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: issue.title }).waitFor()
    const assign = page.getByRole('dialog', { name: 'Assign' })
    await page.keyboard.press('Control+k')
    await page.keyboard.type('assign')
    await page.getByRole('option', { name: 'Assign this issue' }).waitFor()
    await page.keyboard.press('Enter')
    await assign.waitFor()
    // Wait until the browser reports that the dialog is closed. An earlier key would open it again.
    await page.evaluate(async () => {
      document.querySelector('dialog')?.requestClose()
      await Promise.resolve()
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'a', bubbles: true }))
    })
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve)))
    // With an empty field, Enter assigns the issue to the person.
    await assign.getByRole('button', { name: 'Assign to me' }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByText(`assigned it to ${EMAIL}`).waitFor()
    // The dialog closes when the page has new data. Until then, it gets the keys.
    await assign.waitFor({ state: 'detached' })
    await page.keyboard.press('c')
    await page.keyboard.type(`The limit is wrong ${HARM}`)
    await page.keyboard.press('Control+Enter')
    await page.getByRole('listitem').filter({ hasText: 'The limit is wrong' }).waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('e')
    await page.getByText('resolved the issue').waitFor()
    assert.equal((await read(issue)).state, 'RESOLVED')
    await submit(tacho.service, detection('KEYS', { runId: null }))
    await reviewed(tacho.service)
    await page.getByText('↩Came back').waitFor()
    await page.getByText('it was detected again after it was resolved').waitFor()
    await page.keyboard.press('i')
    await page.getByRole('dialog').getByLabel('for 30 days').check()
    await page.getByRole('dialog').getByRole('button', { name: 'Ignore' }).click()
    await page.getByText('ignored the issue').waitFor()
    await page.goto(`${issues()}?state=IGNORED`)
    await page.getByRole('row').filter({ hasText: 'keys' }).waitFor()
    assert.equal(await page.locator('img, #root script').count(), 0)
    await close()
  })

  test('an issue says how many end users it has, lists occurrences five at a time below comments, and marks deployments', async () => {
    const { newPolicy, deploy } = await configurationCalls(tacho.service)
    await newPolicy({ policyId: 'marked' })
    await deploy([['policy', 'marked', '1']])
    const runIds = Array.from({ length: 7 }, (_, n) => `used-${n}`)
    await tacho.service.record(
      runIds.map((runId, n) => event({ runId, eventType: 'USER_INPUT', payload: { userId: `customer ${n % 3}` } })),
    )
    const issue = await openedIssue(tacho.service, ...runIds.map((runId) => detection('USED', { runId })))
    const { page, close } = await tacho.open(`${issues()}/${issue.id}`)
    const occurrences = page.getByRole('region', { name: 'Occurrences' })
    await occurrences.getByRole('listitem').nth(4).waitFor()
    assert.equal(await occurrences.getByRole('listitem').count(), 5)
    await occurrences.getByRole('button', { name: 'Show older occurrences' }).click()
    await occurrences.getByRole('listitem').nth(6).waitFor()
    const numbers = page.getByRole('region', { name: 'Numbers' })
    assert.match(await numbers.innerText(), /End users\s+3/)
    await numbers.getByRole('list', { name: 'Deployments' }).getByRole('link').first().waitFor()
    const titles = await page.getByRole('heading', { level: 2 }).allTextContents()
    assert.ok(titles.indexOf('Comments and history') < titles.indexOf('Occurrences'), titles.join())
    await close()
  })

  test('the page of an agent counts its own detections of an issue, not those of other agents', async () => {
    await tacho.service.record(
      ['first', 'second'].map((agentId) => event({ runId: `of ${agentId}`, agentId, agentName: `Agent ${agentId}` })),
    )
    const of = (agentId: string) => detection('SHARED', { agentId, runId: `of ${agentId}` })
    await openedIssue(tacho.service, of('first'), of('second'), of('second'), of('second'))
    await openedIssue(tacho.service, { ...of('first'), detectionType: 'ALONE' })
    const { page, close } = await tacho.open(`${tacho.home}/agents/first`)
    const part = page.getByRole('region', { name: 'Open issues' })
    const shared = part.getByText('1×').and(part.getByTitle('4 times in runs of 2 agents'))
    await shared.waitFor()
    await part.getByText('1×').and(part.getByTitle('1 time in runs of 1 agent')).waitFor()
    await page.goto(`${tacho.home}/agents/second`)
    await part.getByText('3×').waitFor()
    await close()
  })

  test('two issues are merged, and split again', async () => {
    const one = await openedIssue(tacho.service, detection('MERGED_ONE'))
    const two = await openedIssue(tacho.service, detection('MERGED_TWO'))
    const { page, close } = await tacho.open(`${issues()}/${one.id}`)
    await page.getByRole('button', { name: 'Merge…' }).click()
    // The focus is in the search field of the dialog.
    await page.getByRole('dialog').getByRole('radio', { name: two.title }).waitFor()
    await page.keyboard.type('merged_two')
    await page.getByRole('dialog').getByRole('radio').nth(1).waitFor({ state: 'detached' })
    await page.getByRole('dialog').getByRole('radio', { name: two.title }).check()
    await page.getByRole('button', { name: 'Merge', exact: true }).click()
    await page.waitForURL(`**/issues/${two.id}`)
    await page.getByText('2 sets of facts, merged by people').waitFor()
    await page.getByRole('button', { name: 'Split…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Split facts off' })
    await dialog.getByRole('checkbox', { name: /merged_one/ }).check()
    await dialog.getByRole('button', { name: 'Split off' }).click()
    await page.waitForURL(`**/issues/${one.id}`)
    await page.getByRole('heading', { level: 1, name: one.title }).waitFor()
    await close()
  })

  test('a viewer reads everything and is offered no act', async () => {
    const issue = await openedIssue(tacho.service, detection('SEEN'))
    const viewer = await newPerson(tacho.service, 'viewer@example.com', 'viewer', null)
    const { page, close } = await tacho.open(`${issues()}/${issue.id}`, { as: viewer })
    await page.getByRole('region', { name: 'Comments and history' }).waitFor()
    assert.equal(await page.getByRole('button', { name: /^(Resolve|Ignore…|Assign…|Merge…|Comment)$/ }).count(), 0)
    await page.keyboard.press('e')
    assert.equal((await read(issue)).state, 'OPEN')
    await close()
  })

  test('the page is accessible and fits, light, dark and on a phone', async () => {
    const issue = await openedIssue(tacho.service, detection('LOOK'), detection('LOOK'))
    const { page, close } = await tacho.open(issues())
    await page.getByRole('link', { name: issue.title }).click()
    await page.getByRole('region', { name: 'Occurrences' }).getByRole('button').first().click()
    await page.getByText('BLOCK').nth(1).waitFor()
    await assertLooks(page, 'issue')
    await close()
  })
})
