/** The list of issues: rows that stay in place, triage by keyboard, issues that look alike. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Issue } from '@tacho/contract/issues/issue.ts'
import { eventually } from '../../server/test/setup/eventually.ts'
import { openedIssue, reviewed, submit } from '../../server/test/setup/issue-service.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, startConsole, type TestConsole } from './setup/console.ts'
import { detection, readIssue } from './setup/issues.ts'

describe('issues', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole()
  })
  after(() => tacho.close())

  const issues = () => `${tacho.home}/issues`
  const read = (issue: Issue) => readIssue(tacho, issue)

  test('an empty list says what will be here', async () => {
    const { page, close } = await tacho.open(issues())
    await page.getByRole('heading', { name: 'No open issues' }).waitFor()
    await close()
  })

  test('a row names its agents, and on a phone has two lines of the title, how often and when', async () => {
    const long = `RENAMED ${'twice and '.repeat(6)} at last`
    await tacho.service.record([event({ runId: 'renamed', agentId: 'agt-9', agentName: 'Billing agent' })])
    const issue = await openedIssue(tacho.service, detection(long, { agentId: 'agt-9', runId: 'renamed' }))
    const { page, close } = await tacho.open(`${issues()}?q=renamed`)
    const row = page.getByRole('row').filter({ hasText: issue.title })
    await row.getByText('Billing agent').waitFor()
    const link = row.getByRole('link')
    const lines = () => link.evaluate((it) => Math.round(it.clientHeight / parseFloat(getComputedStyle(it).lineHeight)))
    assert.equal(await lines(), 1)
    await page.setViewportSize({ width: 390, height: 844 })
    await eventually(async () => (await lines()) === 2, 'two lines of the title')
    await row.getByText(/^1× · /).waitFor()
    await assertLooks(page, 'issue rows')
    await close()
  })

  test('ten issues are triaged by keyboard alone: searched, chosen, resolved, ignored, assigned, merged, undone', async () => {
    const opened: Issue[] = []
    for (let n = 0; n < 10; n++) {
      const payload = { toolName: 'triaged', reasonCode: `reason ${'abcdefghij'[n]}` }
      opened.push(
        await openedIssue(tacho.service, detection(`TRIAGE ${'abcdefghij'[n]}`, { payload, agentId: `triager` })),
      )
    }
    const statesOf = async (which: readonly Issue[]) => (await Promise.all(which.map(read))).map(({ state }) => state)
    const { page, close } = await tacho.open(issues())
    const rows = page.getByRole('table', { name: 'Issues' }).getByRole('row')
    await rows.filter({ hasText: 'triaged' }).first().waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('TRIAGED triager')
    await page.waitForURL('**/issues?q=TRIAGED*')
    await rows.nth(10).waitFor()
    await rows.nth(11).waitFor({ state: 'detached' })
    await page.keyboard.press('Escape')
    const acts = page.getByRole('group', { name: 'Acts' })
    const done = acts.getByRole('status')
    const shown = await rows.getByRole('link').allTextContents()
    const byRow = shown.map((title) => opened.find((issue) => issue.title === title)!)
    // Resolve three issues at once, and undo it.
    for (let n = 0; n < 3; n++) {
      await page.keyboard.press('j')
      await page.keyboard.press('x')
    }
    await acts.getByText('3 chosen').waitFor()
    await assertLooks(page, 'issues chosen')
    await page.route('**/resolve', async (route) => {
      await sleep(200)
      await route.continue()
    })
    await page.keyboard.press('e')
    await acts.locator('[aria-busy=true]').waitFor()
    await page.keyboard.press('e')
    await done.getByText('Resolved 3 issues').waitFor()
    await page.unroute('**/resolve')
    assert.equal(await acts.getByRole('alert').count(), 0)
    assert.deepEqual(await statesOf(byRow.slice(0, 3)), ['RESOLVED', 'RESOLVED', 'RESOLVED'])
    await rows.nth(8).waitFor({ state: 'detached' })
    // After a refused undo, the person can try it again.
    let requests = 0
    const refusal = { status: 409, contentType: 'application/problem+json', body: '{"status":409,"code":"conflict"}' }
    await page.route('**/reopen', (route) => (++requests === 1 ? route.continue() : route.fulfill(refusal)))
    await page.keyboard.press('u')
    await acts.getByRole('alert').waitFor()
    await page.unroute('**/reopen')
    await page.keyboard.press('u')
    await rows.nth(10).waitFor()
    assert.deepEqual(await statesOf(byRow.slice(0, 3)), ['OPEN', 'OPEN', 'OPEN'])
    // Ignore the row that the keys have reached, with the default time, without choosing rows.
    await page.keyboard.press('k')
    await page.keyboard.press('i')
    await page.getByRole('dialog', { name: 'Ignore the issue' }).waitFor()
    await page.keyboard.press('Enter')
    await done.getByText(/^Ignored/).waitFor()
    await rows.nth(10).waitFor({ state: 'detached' })
    // The keys continue at the place of the removed row.
    await page.keyboard.press('j')
    await page.locator('tr[data-current=true]').filter({ hasText: byRow[2]!.title }).waitFor()
    await page.keyboard.press('u')
    await rows.nth(10).waitFor()
    // A held key acts once.
    await page.keyboard.press('j')
    await page.keyboard.down('e')
    await rows.nth(10).waitFor({ state: 'detached' })
    await page.keyboard.down('e')
    await page.keyboard.up('e')
    await page.keyboard.press('u')
    await rows.nth(10).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('x')
    await page.keyboard.press('j')
    await page.keyboard.press('x')
    const pair = byRow.filter((_, at) => at < 2)
    await page.keyboard.press('a')
    const assign = page.getByRole('dialog', { name: 'Assign 2 issues' })
    await assign.waitFor()
    await page.keyboard.type('ben@example.com')
    // An assignee need not be a member of the workspace, but the dialog warns about an unknown name.
    await assign.getByText('! No person in this workspace has this name or address.').waitFor()
    await page.keyboard.press('Enter')
    await done.getByText('Assigned 2 issues to ben@example.com').waitFor()
    await rows.filter({ hasText: '→ ben@example.com' }).nth(1).waitFor()
    const assigned = (await Promise.all(opened.map(read))).filter(({ assignee }) => assignee === 'ben@example.com')
    assert.equal(assigned.length, pair.length)
    await page.keyboard.press('u')
    await rows.filter({ hasText: '→ ben@example.com' }).first().waitFor({ state: 'detached' })
    // Merge into the offered issue, and separate them again.
    await page.keyboard.press('x')
    await page.keyboard.press('j')
    await page.keyboard.press('x')
    await page.keyboard.press('m')
    await page.getByRole('dialog', { name: 'Merge 2 issues into one' }).waitFor()
    await page.keyboard.press('Enter')
    await done.getByText(/^Merged/).waitFor()
    await rows.nth(10).waitFor({ state: 'detached' })
    await page.keyboard.press('u')
    await rows.nth(10).waitFor()
    assert.deepEqual(new Set(await statesOf(opened)), new Set(['OPEN']))
    await close()
  })

  test('rows keep their places while a person works in the list, and what changed is shown on demand', async () => {
    const detected = (name: string) =>
      detection(`STEADY ${name}`, { runId: null, payload: { toolName: 'steady', reasonCode: `reason ${name}` } })
    for (const name of ['first', 'second', 'third']) await openedIssue(tacho.service, detected(name))
    const again = async (name: string) => {
      await submit(tacho.service, detected(name))
      await reviewed(tacho.service)
    }
    const { page, close } = await tacho.open(`${issues()}?q=steady`)
    const rows = page.getByRole('table', { name: 'Issues' }).getByRole('row')
    await rows.nth(3).waitFor()
    const titles = async () =>
      (await rows.getByRole('link').allTextContents()).map((title) => /reason (\w+)/.exec(title)?.[1])
    const news = (count: number) => page.getByRole('button', { name: `${count} changed – show` })
    assert.deepEqual(await titles(), ['third', 'second', 'first'])
    // No row moves while the pointer is over the list.
    await rows.nth(2).hover()
    await again('first')
    await news(1).waitFor()
    assert.deepEqual(await titles(), ['third', 'second', 'first'])
    await rows.nth(3).getByText('2', { exact: true }).first().waitFor()
    await assertLooks(page, 'issues that changed')
    await page.mouse.move(0, 0)
    await news(1).waitFor({ state: 'detached' })
    assert.deepEqual(await titles(), ['first', 'third', 'second'])
    // The same while a row is chosen by keyboard. An act on it moves only that row.
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('x')
    await again('second')
    await openedIssue(tacho.service, detected('fourth'))
    await news(2).waitFor()
    assert.deepEqual(await titles(), ['first', 'third', 'second'])
    await page.keyboard.press('e')
    await rows.nth(3).waitFor({ state: 'detached' })
    assert.deepEqual(await titles(), ['first', 'second'])
    await page.keyboard.press('u')
    await rows.nth(3).waitFor()
    assert.deepEqual(await titles(), ['first', 'third', 'second'])
    await news(2).click()
    await rows.nth(4).waitFor()
    assert.deepEqual(await titles(), ['fourth', 'second', 'first', 'third'])
    await close()
  })

  test('issues that look alike are merged from their row, and an id finds the message that leaves it out', async () => {
    for (const id of ['A-…', 'B-…', '…']) {
      const payload = { toolName: 'find_order', reasonCode: `No order ${id} in store ${id.length}` }
      await openedIssue(tacho.service, detection(`ALIKE ${id}`, { payload }))
    }
    const { page, close } = await tacho.open(`${issues()}?q=alike`)
    const rows = page.getByRole('table', { name: 'Issues' }).getByRole('row')
    await rows.nth(3).waitFor()
    await page.getByRole('button', { name: '3 look alike: merge' }).click()
    const dialog = page.getByRole('dialog', { name: 'Merge 3 issues into one' })
    await dialog.getByRole('radio').nth(2).waitFor()
    assert.equal(await dialog.getByRole('radio').count(), 3)
    await dialog.getByRole('button', { name: 'Merge' }).click()
    await rows.nth(2).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Undo' }).click()
    await rows.nth(3).waitFor()
    await page
      .getByRole('searchbox', { name: 'Search issues' })
      .or(page.getByLabel('Search issues'))
      .fill('order A-4711')
    await page.waitForURL(/q=order/)
    await rows.nth(1).waitFor()
    await close()
  })

  test('the list is accessible and fits, light, dark and on a phone', async () => {
    const issue = await openedIssue(tacho.service, detection('LOOK'), detection('LOOK'))
    const { page, close } = await tacho.open(issues())
    await page.getByRole('row').nth(1).waitFor()
    await page.getByRole('link', { name: issue.title }).waitFor()
    await assertLooks(page, 'issues')
    await close()
  })
})
