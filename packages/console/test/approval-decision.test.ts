/** Decisions in the console: whether one was stored, also without a network, without an answer, or after another person's. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { newPerson } from '../../server/test/http/people/browser.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, PHONE } from './setup/console.ts'
import { approvalsConsole, pane, waitingList } from './setup/approvals.ts'

describe('decisions about approvals', { skip: withoutChromium }, () => {
  const { tacho, calls, ask, approvals } = approvalsConsole()

  test('a decision says whether it counted, also when its answer is lost or another person was first', async () => {
    const [lost, late, never] = [await ask('lost'), await ask('late'), await ask('never')]
    await newPerson(tacho.service, 'second@example.com', 'approver', null)
    const { page } = await tacho.open(`${approvals()}/${lost}`)
    await pane(page).getByText('Can also decide: second@example.com, programs with an operator token.').waitFor()
    // The decision arrives at the server, but its answer is lost.
    await page.route('**/decision', async (route) => {
      await route.fetch()
      await route.abort()
    })
    await page.getByRole('button', { name: 'Approve' }).click()
    await pane(page).getByText('Your decision counts: approved. The answer was lost').waitFor()
    await assertLooks(page, 'approval decided without an answer')
    await page.goto(`${approvals()}/${late}`)
    await page.unroute('**/decision')
    // The page does not know yet that another person decided.
    await page.route('**/decision', async (route) => {
      await calls.decide(late, 'REJECTED', 'Not ours')
      await route.continue()
    })
    await page.getByRole('button', { name: 'Approve' }).click()
    await pane(page)
      .getByText(/Your decision did not count\. .+ rejected it at/)
      .waitFor()
    await page.unroute('**/decision')
    await page.goto(`${approvals()}/${never}`)
    await page.route('**/decision', (route) => route.abort())
    await page.getByRole('button', { name: 'Reject', exact: true }).click()
    await pane(page).getByText('Your decision did not count. The request still waits. Decide again.').waitFor()
    await page.unroute('**/decision')
    await page.getByRole('button', { name: 'Reject', exact: true }).click()
    await pane(page).getByText('Your decision counts: rejected.').waitFor()
    // The browser logs the requests that failed, which fails `close`.
    await page.context().close()
  })

  test('a reason outlives a reload and a person who was first, and the focus goes to what happened', async () => {
    const id = await ask('raced')
    const { page, close } = await tacho.open(`${approvals()}/${id}`)
    await page.getByLabel('Reason').fill('Half of a thought')
    await page.reload()
    await page.getByLabel('Reason').click()
    assert.equal(await page.getByLabel('Reason').inputValue(), 'Half of a thought')
    await calls.decide(id, 'REJECTED', 'Not ours')
    const ended = pane(page).getByRole('alert').filter({ hasText: 'Nothing of yours was sent.' })
    await ended.getByText('“Half of a thought”').waitFor()
    assert.match(await ended.innerText(), /rejected it at /)
    await page.waitForFunction(() => document.activeElement?.getAttribute('role') === 'alert')
    await assertLooks(page, 'approval lost to another person')
    await ended.getByRole('button', { name: 'Done' }).click()
    await ended.waitFor({ state: 'detached' })
    await close()
  })

  test('without network, nothing is sent or kept for later: the page says so, keeps the reason, and the last word counts', async () => {
    const [id, other] = [await ask('offline'), await ask('offline-2', { toolName: 'mail' })]
    const { page } = await tacho.open(`${approvals()}/${id}`, { ...PHONE, hasTouch: true })
    const approve = page.getByRole('button', { name: 'Approve' })
    const reject = page.getByRole('button', { name: 'Reject', exact: true })
    await page.getByLabel('Reason').fill('The invoice is ours')
    await page.context().setOffline(true)
    await approve.tap()
    await pane(page).getByText('Not sent: this device is offline.').waitFor({ timeout: 5_000 })
    assert.deepEqual([await approve.isDisabled(), await reject.isDisabled()], [true, true])
    // Go to another page, and back.
    await page.getByRole('link', { name: 'All approvals' }).tap()
    await waitingList(page).getByRole('link', { name: 'transfer' }).tap()
    await pane(page).getByText('Not sent: this device is offline.').waitFor()
    assert.deepEqual([await approve.isDisabled(), await reject.isDisabled()], [true, true])
    const sent: string[] = []
    page.on('request', (request) => request.method() !== 'GET' && sent.push(request.url()))
    await page.context().setOffline(false)
    await pane(page).getByText('Your decision did not count. The request still waits. Decide again.').waitFor()
    assert.deepEqual([sent, await page.getByLabel('Reason').inputValue()], [[], 'The invoice is ours'])
    assert.equal((await calls.read(id)).body.status, 'PENDING')
    await reject.tap()
    await pane(page).getByText('Your decision counts: rejected.').waitFor()
    const { body } = await calls.read(id)
    assert.deepEqual([body.status, body.decisionReason], ['REJECTED', 'The invoice is ours'])

    await page.goto(approvals())
    const third = await ask('offline-3')
    await waitingList(page).getByText('Transfer in offline-3').waitFor()
    for (const tool of ['mail', 'transfer']) await page.getByLabel(`Mark ${tool} of`).check()
    await page.getByRole('button', { name: 'Decide 2…' }).tap()
    sent.length = 0
    await page.context().setOffline(true)
    await page.getByRole('button', { name: 'Approve 2' }).tap()
    await page.getByRole('dialog').getByText('not sent: this device is offline').waitFor({ timeout: 5_000 })
    await page.context().setOffline(false)
    await page.getByRole('dialog').getByText('The request still waits. Decide again.').waitFor()
    await page.getByRole('dialog').getByText('It was not sent, because the answer before it was lost.').waitFor()
    const states = [(await calls.read(other)).body.status, (await calls.read(third)).body.status]
    assert.deepEqual([sent, states], [[], ['PENDING', 'PENDING']])
    await page.context().close()
  })

  test('a service that hangs: it says within seconds that nothing is known, and asks before another decision', async () => {
    const [hung, kept] = [await ask('hung'), await ask('hung-2')]
    const { page } = await tacho.open(`${approvals()}/${hung}`)
    const approve = page.getByRole('button', { name: 'Approve' })
    const reject = page.getByRole('button', { name: 'Reject', exact: true })
    await approve.waitFor()
    const release = Promise.withResolvers<void>()
    // The server stores the decision late, and answers only then.
    await page.route(`**/approvals/${hung}/decision`, async (route) => {
      await release.promise
      await calls.decide(hung, 'APPROVED')
      await route.abort().catch(() => undefined)
    })
    await page.route(`**/approvals/${hung}`, async (route) => {
      if (route.request().resourceType() === 'document') return route.continue()
      await release.promise
      await route.continue().catch(() => undefined)
    })
    await approve.click()
    await pane(page).getByText('Sending your approval…').waitFor()
    assert.equal(await reject.isDisabled(), true)
    await pane(page).getByText('it is not known whether your approval was saved').waitFor({ timeout: 9_000 })
    assert.deepEqual([await approve.isDisabled(), await reject.isDisabled()], [true, true])
    // Another request can be decided in the meantime.
    await page.goto(`${approvals()}/${kept}`)
    await reject.click()
    await pane(page).getByText('Your decision counts: rejected.').waitFor()
    release.resolve()
    await page.goto(`${approvals()}/${hung}`)
    await pane(page)
      .getByText(/^.?Approved$/)
      .first()
      .waitFor()
    await page.context().close()
  })

  test('a lost decision that the service stores after it was asked counts in the end', async () => {
    const id = await ask('stored-late')
    const { page } = await tacho.open(`${approvals()}/${id}`)
    await page.route('**/decision', (route) => route.abort())
    await page.getByRole('button', { name: 'Approve' }).click()
    await pane(page).getByText('The request still waits. Decide again.').waitFor()
    // The decider of this test is not the person of the page.
    await calls.decide(id, 'APPROVED', 'late')
    await pane(page)
      .getByText(/Your decision did not count\. .+ approved it at/)
      .waitFor()
    await page.context().close()
  })

  test('a part that cannot be read does not say that there is nothing', async () => {
    const id = await ask('unread')
    const { page } = await tacho.open()
    await page.route(/\/(events|event-rows|timeline)\b/, (route) => route.abort())
    await page.goto(`${approvals()}/${id}`)
    const steps = pane(page).getByRole('region', { name: 'Last steps of the run' })
    await steps.getByText('This could not be read.').waitFor()
    assert.equal(await pane(page).getByText('has been recorded').count(), 0)
    await page.context().close()
  })
})
