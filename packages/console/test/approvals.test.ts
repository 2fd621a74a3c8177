/** Approvals appear by themselves, are decided by mouse, keyboard and touch, and show what happened afterwards. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { STALLED_MS } from '@tacho/contract/runs/run-activity.ts'
import { newPerson } from '../../server/test/http/people/browser.ts'
import { configurationCalls } from '../../server/test/setup/configuration-service.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, PHONE } from './setup/console.ts'
import { approvalsConsole, pane, waitingList } from './setup/approvals.ts'

describe('approvals', { skip: withoutChromium }, () => {
  const { tacho, calls, ask, ran, approvals } = approvalsConsole()

  test('a request appears by itself, is decided by keyboard, and tells what the agent did then', async () => {
    const { page, close } = await tacho.open(approvals())
    await page.getByRole('heading', { name: 'Nothing waits for a decision' }).waitFor()
    await tacho.service.record([event({ runId: 'before', agentId: 'payer', agentName: 'Accounts payable' })])
    const id = await ask('first')
    await waitingList(page).getByText('Transfer in first').waitFor()
    await waitingList(page).getByText('Accounts payable').waitFor()
    await page.waitForFunction(() => document.title.startsWith('(1) '))
    await page.keyboard.press('j')
    await page.waitForURL(`**/approvals/${id}`)
    await pane(page).getByRole('heading', { name: 'Transfer 120.5 · ana.silva@example.com' }).waitFor()
    await pane(page).getByText('Pay the invoice').waitFor()
    await pane(page).getByText('This is the first.').waitFor()
    await pane(page).getByText('Transfer limit').waitFor()
    await page.keyboard.press('e')
    await page.keyboard.type('The invoice is paid by us')
    await page.keyboard.press('Escape')
    await page.keyboard.press('a')
    await page.keyboard.press('Enter')
    await pane(page)
      .getByText(/^.?Approved$/)
      .waitFor()
    await pane(page).getByText('The invoice is paid by us').waitFor()
    await pane(page).getByText('No call of the tool has been recorded since.').waitFor()
    await page.waitForFunction(() => !document.title.startsWith('('))
    await ran('first', id)
    await pane(page).getByText('The tool ran with the approved input.').waitFor()
    const { body } = await calls.read(id)
    assert.deepEqual([body.status, body.decisionReason], ['APPROVED', 'The invoice is paid by us'])
    await close()
  })

  test('a run that waits for a person is not stalled, however long, and leads to the request', async () => {
    const long = Date.now() - 2 * STALLED_MS
    const paused = { eventType: 'WAITING', label: 'refund waits for a person', payload: { waitingFor: 'approval' } }
    await tacho.service.record([
      event({ runId: 'held', timestamp: long }),
      event({ runId: 'silent', timestamp: long }),
      event({ runId: 'paused', timestamp: long, ...paused }),
    ])
    const { body } = await calls.ask({ runId: 'held', toolName: 'hold' })
    const { page, close } = await tacho.open(`${tacho.home}/runs`)
    const row = (name: string) => page.getByRole('row').filter({ hasText: name })
    await row('silent').getByText('Stalled').waitFor()
    await row('held').getByText('Waiting').waitFor()
    await row('paused').getByText('Waiting').waitFor()
    await page.getByRole('link', { name: 'held' }).click()
    await page.getByRole('link', { name: 'waits for an approval' }).click()
    await page.waitForURL(`**/approvals/${body.id}`)
    await close()
  })

  test('a request shows what earlier ones of its tool led to, and a call that ran otherwise stands out', async () => {
    const rejected = await ask('second')
    await calls.decide(rejected, 'REJECTED', 'Not ours')
    await ran('second', rejected)
    const id = await ask('third')
    const { page, close } = await tacho.open(`${approvals()}/${id}`)
    const reject = page.getByRole('button', { name: 'Reject', exact: true })
    await reject.waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('reject')
    await page.getByRole('option', { name: 'Reject (Enter decides)' }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForFunction(() => document.activeElement?.textContent === 'Reject')
    const earlier = page.getByRole('region', { name: 'Earlier requests for this tool' })
    await earlier.getByText('1 approved · 1 rejected').waitFor()
    await earlier.getByText('The tool ran although a person rejected it').waitFor()
    await earlier.getByText('Ran as approved').waitFor()
    await earlier.getByRole('link', { name: 'Not ours' }).click()
    await page.waitForURL(`**/approvals/${rejected}?show=history`)
    await pane(page).getByText('! The tool ran although a person rejected it.').waitFor()
    await close()
  })

  test('several are decided at once, after a list of what will be decided', async () => {
    for (const run of ['a', 'b']) await ask(`many-${run}`)
    const other = await ask('many-c', { toolName: 'mail' })
    const { page, close } = await tacho.open(approvals())
    await page.getByLabel('Mark all 2 of transfer').check()
    await page.keyboard.press('Escape')
    await waitingList(page).getByRole('link', { name: 'mail' }).click()
    // Keys act on the open request.
    await page.waitForURL(`**/approvals/${other}`)
    await pane(page).getByText('Transfer in many-c').waitFor()
    await page.keyboard.press('x')
    await page.keyboard.press('d')
    const dialog = page.getByRole('dialog', { name: 'Decide 3 requests' })
    for (const run of ['a', 'b', 'c']) await dialog.getByText(`Transfer in many-${run}`).waitFor()
    // Another person decides one of the chosen requests first.
    await calls.decide(other, 'APPROVED')
    await dialog.getByLabel('Reason for all').fill('Not today')
    await dialog.getByRole('button', { name: 'Reject 3' }).click()
    await dialog.getByText('not by you').waitFor()
    // Each tool's requests are decided in turn. The dialog can be closed after the last of them.
    await dialog.getByRole('button', { name: 'Close' }).waitFor()
    assert.equal(await dialog.getByText(/^.?Rejected$/).count(), 2)
    await dialog.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('heading', { name: 'Nothing waits for a decision' }).waitFor()
    await close()
  })

  test('the history is searched, and its address holds the filters', async () => {
    const { page, close } = await tacho.open(approvals())
    await page.getByRole('button', { name: 'History' }).click()
    await page.waitForURL('**/approvals?show=history')
    await page.keyboard.press('/')
    await page.keyboard.type('mail')
    await page.waitForURL('**/approvals?show=history&tool=mail')
    await page.getByLabel('Status').selectOption('Approved')
    await page.getByRole('listitem').nth(1).waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'mail' }).click()
    await pane(page)
      .getByText(/^.?Approved$/)
      .waitFor()
    await page.reload()
    await pane(page)
      .getByText(/^.?Approved$/)
      .waitFor()
    await page.getByLabel('Status').selectOption('Expired')
    await page.getByRole('heading', { name: 'No request matches' }).waitFor()
    await close()
  })

  test('a viewer reads everything and is offered nothing to decide', async () => {
    const id = await ask('seen')
    const viewer = await newPerson(tacho.service, 'viewer@example.com', 'viewer', null)
    const { page, close } = await tacho.open(`${approvals()}/${id}`, { as: viewer })
    await pane(page).getByRole('cell', { name: 'ana.silva@example.com' }).waitFor()
    assert.equal(await page.getByRole('button', { name: /^(Approve|Reject)$/ }).count(), 0)
    assert.equal(await page.getByRole('checkbox').count(), 0)
    await close()
  })

  test('on a phone, a request is one tap away and approved with the thumb', async () => {
    const id = await ask('thumb')
    const { page, close } = await tacho.open(tacho.home, { ...PHONE, hasTouch: true })
    await page.getByRole('link', { name: /^Approvals/ }).tap()
    await waitingList(page).getByRole('link', { name: 'transfer' }).tap()
    const approve = page.getByRole('button', { name: 'Approve' })
    const box = await approve.boundingBox()
    assert.ok(box && box.height >= 44 && box.y > 700 && box.y + box.height <= 844, JSON.stringify(box))
    await approve.tap()
    await pane(page)
      .getByText(/^.?Approved$/)
      .waitFor()
    await page.getByRole('link', { name: 'All approvals' }).tap()
    await page.getByRole('heading', { name: 'Nothing waits for a decision' }).waitFor()
    assert.equal((await calls.read(id)).body.status, 'APPROVED')
    await close()
  })

  test('at 400 % zoom no bar takes the room of the request, and the title names it', async () => {
    const id = await ask('zoomed')
    const { page, close } = await tacho.open(`${approvals()}/${id}`, { viewport: { width: 320, height: 256 } })
    const approve = pane(page).getByRole('button', { name: 'Approve' })
    await approve.waitFor()
    await page.waitForFunction(() => /Transfer 120\.5 · .* · Approvals · Tacho$/.test(document.title))
    // Everything scrolls with the page, so nothing covers the request.
    await approve.scrollIntoViewIfNeeded()
    assert.ok(((await page.getByRole('banner').boundingBox())?.y ?? 0) < 0)
    await pane(page).getByRole('heading').first().scrollIntoViewIfNeeded()
    const [bar, box] = [await approve.boundingBox(), page.viewportSize()]
    assert.ok(bar && box && bar.y > box.height)
    await close()
  })

  test('the page shows the version of the policy that asked, and that a newer one is drafted', async () => {
    const { newPolicy, pushPolicy } = await configurationCalls(tacho.service)
    await newPolicy({
      policyId: 'versions',
      name: 'Versions',
      action: 'REQUIRE_APPROVAL',
      condition: 'tool.input.amount > 1.0',
    })
    const id = await ask('versions', { policyId: 'versions', policyVersion: '1' })
    await pushPolicy('versions', 'tool.input.amount > 900.0')
    const { page, close } = await tacho.open(`${approvals()}/${id}`)
    const policy = pane(page).getByRole('region', { name: 'The policy that asked' })
    await policy.getByText('tool.input.amount > 1.0').waitFor()
    await policy.getByText('Version 2 is drafted, and not in force.').waitFor()
    assert.equal(await policy.getByText('900').count(), 0)
    await assertLooks(page, 'approval by an older version')
    await calls.decide(id, 'REJECTED')
    await page.goto(`${approvals()}/${id}?show=history`)
    await policy.getByText('tool.input.amount > 1.0').waitFor()
    await close()
  })

  test('the pages are accessible and fit, light, dark and on a phone', async () => {
    await calls.decide(await ask('look-0'), 'REJECTED', 'Not ours')
    const lasting = { timeoutMs: 3_600_000 }
    const ids = [await ask('look-1', lasting), await ask('look-2', lasting)]
    await ask('look-3', { toolName: 'delete_account', timeoutMs: 50_000 })
    const { page, close } = await tacho.open(approvals())
    await waitingList(page).getByText('Transfer in look-2').waitFor()
    await assertLooks(page, 'approvals')
    await page.goto(`${approvals()}/${ids[0]}`)
    await page.getByRole('region', { name: 'Earlier requests for this tool' }).getByRole('listitem').first().waitFor()
    await pane(page).getByText('Transfer limit').waitFor()
    await assertLooks(page, 'approval')
    await page.goto(`${approvals()}?show=history`)
    await page.getByRole('list', { name: 'Approvals' }).getByRole('listitem').first().waitFor()
    await assertLooks(page, 'approval history')
    await page.goto(approvals())
    await page.getByLabel('Mark all 2 of transfer').check()
    await page.getByRole('button', { name: 'Decide 2…' }).click()
    await page.getByRole('dialog').getByText('Transfer in look-1').waitFor()
    await assertLooks(page, 'approvals decided at once')
    await page.getByRole('button', { name: 'Approve 2' }).click()
    await page.getByRole('button', { name: 'Close' }).click()
    await close()
  })
})
