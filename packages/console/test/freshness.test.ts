/** Stale data is marked, and typed text is never lost. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { newPerson } from '../../server/test/http/people/browser.ts'
import { approvalCalls } from '../../server/test/setup/approval-service.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertAccessible, EMAIL, PASSWORD, startConsole, type TestConsole } from './setup/console.ts'

describe('freshness', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole()
    await tacho.service.record([event({ runId: 'read-before' })])
  })
  after(() => tacho.close())

  const stale = (page: Page) => page.getByText('what happened since is not known')
  const again = (page: Page) => page.getByText('Current again since')

  test('a server that hangs is called stale while its answers are awaited, and current once it answers', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/runs`)
    const run = page.getByRole('link', { name: 'read-before' })
    await run.waitFor()
    const held: (() => Promise<void>)[] = []
    await page.route('**/operator/v1/**', (route) => void held.push(() => route.continue()))
    await page.getByText('The server does not answer. What you see is of').waitFor()
    assert.ok(await run.isVisible())
    // Ages and counts are marked as stale too, because they would change as if they were current.
    const mark = await page
      .locator('main time')
      .first()
      .evaluate((time) => getComputedStyle(time).textDecorationLine)
    assert.equal(mark, 'underline')
    await assertAccessible(page, 'a stale page')
    await page.unroute('**/operator/v1/**')
    for (const go of held) await go().catch(() => {})
    await again(page).waitFor()
    await stale(page).waitFor({ state: 'detached' })
    await close()
  })

  test('a device without network says so at once', async () => {
    const { page } = await tacho.open(`${tacho.home}/runs`)
    await page.getByRole('link', { name: 'read-before' }).waitFor()
    await page.context().setOffline(true)
    await page.getByText('This device is offline. What you see is of').waitFor()
    await page.context().setOffline(false)
    await again(page).waitFor()
    await page.context().close()
  })

  test('a session that ends keeps what is being written, and the same person goes on with it', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/new-policy`)
    await page.getByLabel('Id').fill('written-before')
    await page.getByRole('textbox', { name: 'Condition' }).fill('tool.name == "refund"')
    await page.context().clearCookies()
    await page.getByRole('button', { name: 'Create' }).click()
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
    await dialog.waitFor()
    // Escape does not close this dialog, because the page behind it cannot do anything without a session.
    await page.keyboard.press('Escape')
    await dialog.getByText('Nothing was saved, sent or decided since.').waitFor()
    await assertAccessible(page, 'the end of a session')
    await dialog.getByLabel('E-mail').fill(EMAIL)
    await dialog.getByLabel('Password').fill('wrong')
    await page.keyboard.press('Enter')
    await dialog.getByRole('alert').filter({ hasText: /./ }).waitFor()
    await dialog.getByLabel('Password').fill(PASSWORD)
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    assert.equal(await page.getByLabel('Id').inputValue(), 'written-before')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.waitForURL('**/policies/written-before')
    await close()
  })

  test('a page below the dialog stays, and a new session follows what others decide', async () => {
    const calls = approvalCalls(tacho.service)
    const { body } = await calls.ask({ runId: 'asks', reason: 'Over the limit' })
    const email = 'eve@example.com'
    const eve = await newPerson(tacho.service, email, 'owner', null)
    const { page, close } = await tacho.open(`${tacho.home}/approvals/${body.id}`, { as: eve })
    await page.getByLabel('Reason').fill('Checked')
    const refused = () =>
      page.waitForResponse((one) => one.url().endsWith(`/approvals/${body.id}`) && one.status() === 401)
    const first = refused()
    assert.ok(await page.evaluate(endSession))
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
    await dialog.waitFor()
    await first
    await refused()
    assert.equal(await page.getByLabel('Reason').inputValue(), 'Checked')
    assert.equal(await page.getByText('The server refused this').count(), 0)
    assert.equal(await dialog.getByLabel('E-mail').inputValue(), email)
    await dialog.getByLabel('Password').fill(PASSWORD)
    const followed = page.waitForResponse((one) => one.url().endsWith('/approvals/stream') && one.ok())
    await page.keyboard.press('Enter')
    await followed
    await dialog.waitFor({ state: 'detached' })
    assert.equal(await page.getByLabel('Reason').inputValue(), 'Checked')
    await close()
  })

  test('a reload brings a policy, a prompt and a comment back, and the next person finds nothing of them', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/new-policy`)
    await page.getByLabel('Id').fill('before-reload')
    await page.getByRole('textbox', { name: 'Condition' }).fill('tool.name == "a"')
    await page.reload()
    await page.getByRole('button', { name: 'Discard what you wrote before' }).waitFor()
    assert.equal(await page.getByLabel('Id').inputValue(), 'before-reload')
    await page.getByText('tool.name == "a"').waitFor()
    await page.goto(`${tacho.home}/new-prompt`)
    await page.getByLabel('Text').fill('Be kind.')
    await page.reload()
    assert.equal(await page.getByLabel('Text').inputValue(), 'Be kind.')
    await page.getByRole('button', { name: 'Discard what you wrote before' }).click()
    assert.equal(await page.getByLabel('Text').inputValue(), '')

    const other = await newPerson(tacho.service, 'other@example.com', 'owner', null)
    const cookies = [...other.cookies].map(([name, value]) => ({ name, value, url: tacho.service.url }))
    await page.context().clearCookies()
    await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor()
    await page.context().addCookies(cookies)
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Account of other' }).waitFor()
    await page.goto(`${tacho.home}/new-policy`)
    assert.equal(await page.getByLabel('Id').inputValue(), '')
    await close()
  })
})

/** Ends the session on the server, like another device of the person. Runs in the page. */
async function endSession(): Promise<boolean> {
  return (await fetch('/operator/v1/sign-out', { method: 'POST' })).ok
}
