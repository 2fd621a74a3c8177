/** The list of runs: filters, order, columns, views and rows. These tests also list the runs of the tests of the run page. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { printable } from '@tacho/contract/engine/shown-text.ts'
import { newPerson } from '../../../server/test/http/people/browser.ts'
import { event } from '../../../server/test/setup/service.ts'
import { assertFine, assertLooks, HARM, PHONE, type TestConsole } from '../setup/console.ts'

export function testRunList(tacho: () => TestConsole): void {
  test('filters stand in the address, and finding nothing says why', async () => {
    const { page, close } = await tacho().open(`${tacho().home}/runs`)
    await page.getByRole('combobox', { name: 'Status' }).selectOption('Cancelled')
    await page.waitForURL('**/runs?status=CANCELLED')
    await page.getByRole('heading', { name: 'No run matches' }).waitFor()
    await page.getByRole('button', { name: 'Show all runs' }).click()
    await page.waitForURL('**/runs')
    await page.getByRole('button', { name: 'More filters' }).click()
    const tools = page.getByRole('region', { name: 'Tools, last 7 days' })
    await tools.getByRole('button', { name: /^refund/ }).click()
    await page.waitForURL('**/runs?tool=refund')
    await tools.getByRole('button', { name: /^refund/, pressed: true }).click()
    await page.waitForURL('**/runs')
    await page.getByRole('combobox', { name: 'Tool' }).fill('refund')
    await page.waitForURL('**/runs?tool=refund')
    await page.getByLabel('With errors').check()
    await page.waitForURL('**/runs?tool=refund&hasErrors=true')
    await page.waitForFunction(() => document.querySelectorAll('[aria-label=Runs] [role=row]').length === 2)
    await page.getByRole('row').filter({ hasText: 'trouble' }).waitFor()
    const button = page.getByRole('button', { name: 'Columns' })
    await page.goto(`${tacho().home}/runs`)
    const rows = page.getByRole('table', { name: 'Runs' }).getByRole('row')
    await page.getByRole('combobox', { name: 'Order' }).selectOption('Most errors')
    await page.waitForURL('**/runs?order=failures')
    await rows.nth(1).waitFor()
    await page.getByRole('columnheader', { name: 'Length' }).getByRole('button').click()
    await page.waitForURL('**/runs?order=length')
    await page.locator('[aria-sort=descending]', { hasText: 'Length' }).waitFor()
    await page.getByRole('combobox', { name: 'Status' }).selectOption('Running')
    await page.waitForURL('**/runs?status=RUNNING')
    await page.goto(`${tacho().home}/runs?tool=refund&hasErrors=true`)
    // Wait for the data, which can move the button.
    await page.getByRole('row').filter({ hasText: 'trouble' }).waitFor()
    await button.click()
    const [opened, opener] = [
      await page.getByRole('group', { name: 'Columns' }).boundingBox(),
      await button.boundingBox(),
    ]
    assert.ok(opened && opener && opened.y > opener.y, 'the menu opens below its button')
    assert.equal(Math.round(opened.x + opened.width), Math.round(opener.x + opener.width))
    await page.getByRole('group', { name: 'Columns' }).getByLabel('Errors').check()
    await page.getByRole('columnheader', { name: 'Errors' }).waitFor()
    await page.keyboard.press('Escape')
    await page.reload()
    await page.getByRole('row').filter({ hasText: 'trouble' }).getByText('2', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Clear' }).click()
    await page.waitForURL(/runs\?columns=[^&]+$/)
    await page.goto(`${tacho().home}/runs`)
    await page.getByRole('columnheader', { name: 'Errors' }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('trou')
    await page.waitForURL('**/runs?q=trou')
    // Rows of the previous search stay until the new ones arrive. Wait for the head and one run.
    await page.waitForFunction(() => document.querySelectorAll('[aria-label=Runs] [role=row]').length === 2)
    await page.getByRole('row').filter({ hasText: 'trouble' }).waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'trouble' }).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('e')
    await page.getByRole('option', { name: /^entire/ }).waitFor()
    const answer = Promise.withResolvers<void>()
    await page.route(/q=exac/, async (route) => {
      await answer.promise
      await route.continue()
    })
    await page.keyboard.type('xac')
    // Wait for the answer: before, Enter would open this option.
    await page.getByRole('option', { name: /^entire/ }).waitFor({ state: 'detached' })
    answer.resolve()
    await page.getByRole('option', { name: /^exact/ }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'exact' }).waitFor()
    await close()
  })

  test('a row has the question, and the reason or the answer; new runs wait, and the choice stays with its run', async () => {
    const about = { runId: 'asked', agentId: 'two-lines', agentName: 'Two lines' }
    const at = Date.now() - 60_000
    const output = { role: 'assistant', content: 'It arrives on Thursday.' }
    await tacho().service.record([
      event({ ...about, label: 'start', timestamp: at }),
      event({
        ...about,
        eventType: 'USER_INPUT',
        label: 'q',
        payload: { text: `Where is it? ${HARM}` },
        timestamp: at,
      }),
      event({ ...about, eventType: 'LLM_CALL', label: 'call', payload: { model: 'gpt-5', output }, timestamp: at + 1 }),
      event({ ...about, runId: 'older', label: 'an older run', timestamp: at - 1_000 }),
    ])
    const { page, close } = await tacho().open(`${tacho().home}/runs?agent=two-lines`)
    const row = page.getByRole('row').filter({ hasText: 'asked' })
    await row.getByText(`Where is it? ${printable(HARM)}`).waitFor()
    await row.getByText('It arrives on Thursday.').waitFor()
    await page.getByRole('row').filter({ hasText: 'older' }).getByText('an older run').waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.locator('[data-current=true]').filter({ hasText: 'older' }).waitFor()
    await assertLooks(page, 'runs in two lines')
    const error = 'OrderError: no order 7'
    const end = { ...about, eventType: 'SESSION_OUTCOME', label: 'end', payload: { status: 'FAILED', error } }
    await tacho().service.record([event({ ...about, runId: 'newer', label: 'a newer run' }), event(end)])
    // A row shows the changes of its run without moving.
    await row.getByText(error).waitFor()
    assert.equal(await page.getByText('a newer run').count(), 0)
    await page.getByRole('button', { name: '1 new run' }).click()
    await page.getByRole('row').nth(1).getByText('a newer run').waitFor()
    await page.locator('[data-current=true]').filter({ hasText: 'older' }).waitFor()
    const agent = row.getByRole('cell').filter({ hasText: 'Two lines' })
    await page.goto(`${tacho().home}/runs`)
    await agent.hover()
    await agent.getByRole('button', { name: 'Only runs with this agent' }).click()
    await page.waitForURL('**/runs?agent=two-lines')
    await page.getByRole('row').filter({ hasText: 'asked' }).getByText('✕').click()
    await page.waitForURL('**/runs/asked')
    await close()
  })

  test('a cancelled run says why, as its list does; the list shows the reason of a failure in a narrow window', async () => {
    const about = { eventType: 'SESSION_OUTCOME', label: 'end', timestamp: Date.now() - 1_000 }
    const error = 'SIGTERM: The process was ended by SIGTERM.'
    await tacho().service.record([
      event({ ...about, runId: 'narrow-stopped', payload: { status: 'CANCELLED', error } }),
      event({ ...about, runId: 'narrow-failed', payload: { status: 'FAILED', error: 'OrderError: no order 7' } }),
    ])
    const viewport = { width: 700, height: 800 }
    const { page, close } = await tacho().open(`${tacho().home}/runs?q=narrow`, { viewport })
    const reason = page.getByRole('row').filter({ hasText: 'narrow-failed' }).getByText('OrderError: no order 7')
    await reason.waitFor()
    const box = await reason.boundingBox()
    assert.ok(box !== null && box.x + box.width <= viewport.width, JSON.stringify(box))
    const stopped = page.getByRole('row').filter({ hasText: 'narrow-stopped' })
    await stopped.getByText(error).waitFor()
    await stopped.getByRole('link').click()
    await page.getByRole('note', { name: 'Why it was cancelled' }).getByText(error).waitFor()
    await close()
  })

  test('filters and columns are saved as a view, opened, renamed by keyboard and deleted; a viewer opens only', async () => {
    const payload = { userId: '4711', runTags: ['beta'], runMetadata: { task: 'refund' } }
    await tacho().service.record([event({ runId: 'kept', payload })])
    const labels = 'user=%224711%22&tag=beta&metadata=task%3Drefund'
    const { page, close } = await tacho().open(`${tacho().home}/runs?q=kept&since=7d&${labels}&columns=run%2Ccost`)
    const menu = page.getByRole('group', { name: 'Views' })
    const button = page.getByRole('button', { name: 'Views', exact: true })
    await page.getByRole('row').filter({ hasText: 'kept' }).waitFor()
    await button.click()
    await menu.getByRole('button', { name: 'Save this view…' }).click()
    await page.getByRole('dialog', { name: 'Save this view' }).getByLabel('Name').fill(HARM)
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.goto(`${tacho().home}/runs`)
    await button.click()
    await assertFine(page, 'views', 'light')
    await menu.getByRole('button', { name: HARM, exact: true }).click()
    const isOpen = ({ searchParams }: URL) =>
      ['q', 'since', 'user', 'tag', 'metadata', 'columns'].map((one) => searchParams.get(one)).join() ===
      'kept,7d,"4711",beta,task=refund,run,cost'
    await page.waitForURL(isOpen)
    await page.waitForFunction(() => document.querySelectorAll('[role=columnheader]').length === 2)

    await button.press('Enter')
    const rename = menu.getByRole('button', { name: `Rename ${HARM}`, exact: true })
    await rename.press('Enter')
    const name = page.getByRole('dialog', { name: 'Rename this view' }).getByLabel('Name')
    await name.fill('Kept')
    await name.press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'detached' })

    const viewer = await newPerson(tacho().service, 'views@example.com', 'viewer', null)
    const other = await tacho().open(`${tacho().home}/runs`, { as: viewer, ...PHONE })
    await other.page.getByRole('button', { name: 'Views', exact: true }).click()
    await other.page.getByRole('button', { name: 'Kept', exact: true }).waitFor()
    assert.equal(await other.page.getByRole('group', { name: 'Views' }).getByRole('button').count(), 1)
    await assertFine(other.page, 'views', 'phone')
    await other.close()

    await button.click()
    await menu.getByRole('button', { name: 'Delete Kept', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await button.click()
    await menu.getByText('A view keeps filters and columns under a name').waitFor()
    await close()
  })
}
