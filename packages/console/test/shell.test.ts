/** The frame of every page: menus, the palette, tabs and keys. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { eventually } from '../../server/test/setup/eventually.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertFine, startConsole, type TestConsole } from './setup/console.ts'

const SIZES = [
  { width: 1440, height: 700 },
  { width: 700, height: 700 },
  { width: 390, height: 700 },
]

describe('the shell', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole()
  })
  after(() => tacho.close())

  test('an open menu lies beside its button and inside the window, at every width', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/settings/api-keys`)
    for (const [section, name] of [
      ['settings/api-keys', /^Actions for/],
      ['settings/data', 'Export'],
      ['runs', 'Views'],
      ['runs', /^Account of/],
    ] as const) {
      await page.goto(`${tacho.home}/${section}`)
      for (const size of SIZES) {
        await page.setViewportSize(size)
        const button = page.getByRole('button', { name }).first()
        await button.click()
        const panel = page.locator(':popover-open')
        await panel.waitFor()
        // Data that arrives above moves both, possibly between the two measurements.
        await eventually(
          async () => {
            const [at, around] = [await panel.boundingBox(), await button.boundingBox()]
            assert.ok(at && around)
            const where = JSON.stringify({ at, around })
            assert.ok(at.x >= 0 && at.x + at.width <= size.width, where)
            assert.ok(at.y >= 0 && at.y + at.height <= size.height, where)
            const gap = Math.max(at.y - (around.y + around.height), around.y - (at.y + at.height))
            assert.ok(gap >= 0 && gap < 10, where)
            return true
          },
          `the menu beside its button: ${section} ${String(name)} ${size.width}`,
        )
        await page.keyboard.press('Escape')
        await panel.waitFor({ state: 'detached' })
      }
    }
    await close()
  })

  test('rows of links that scroll sideways fade where they have more, and only there', async () => {
    const { page, close } = await tacho.open(tacho.home, { viewport: { width: 390, height: 700 } })
    const row = page.getByRole('navigation', { name: 'Pages' })
    const edges = () =>
      row.evaluate((element) => ['before', 'after'].filter((edge) => element.hasAttribute(`data-more-${edge}`)).join())
    await page.locator('nav[data-more-after]').waitFor()
    assert.equal(await edges(), 'after')
    assert.notEqual(await row.evaluate((element) => getComputedStyle(element).maskImage), 'none')
    await row.evaluate((element) => element.scrollTo({ left: 60 }))
    await page.locator('nav[data-more-before][data-more-after]').waitFor()
    await page.goto(`${tacho.home}/settings/api-keys`)
    await page.locator('nav[data-more-before]:not([data-more-after])').waitFor()
    await page.getByRole('navigation', { name: 'Settings' }).and(page.locator('[data-more-after]')).waitFor()
    await page.setViewportSize({ width: 1440, height: 700 })
    await page.locator('[data-more-after]').waitFor({ state: 'detached' })
    await close()
  })

  test('the choice of the palette is always in sight', async () => {
    const { page, close } = await tacho.open()
    await page.getByRole('button', { name: /^Go to/ }).click()
    const list = page.getByRole('listbox', { name: 'Results' })
    const isInSight = () =>
      list.evaluate((box) => {
        const [outer, inner] = [box, box.querySelector('[aria-selected=true]')].map((each) =>
          each?.getBoundingClientRect(),
        )
        return outer && inner && inner.top >= outer.top && inner.bottom <= outer.bottom
      })
    await list.getByRole('option', { selected: true, name: 'Overview' }).waitFor()
    // ArrowUp goes to the last entry.
    await page.keyboard.press('ArrowUp')
    await list.getByRole('option', { selected: true, name: 'Get started' }).waitFor()
    await eventually(isInSight, 'the last entry in sight')
    await page.keyboard.press('ArrowDown')
    await list.getByRole('option', { selected: true, name: 'Overview' }).waitFor()
    await eventually(isInSight, 'the first entry in sight')
    await close()
  })

  test('the palette leads to pages of the settings and to what people call a page, by its name first', async () => {
    const { page, close } = await tacho.open()
    await page.getByRole('button', { name: /^Account of/ }).waitFor()
    for (const [text, name] of [
      ['members', 'People'],
      ['API keys', 'API keys'],
      ['deploy', 'Rollout'],
      ['compare', 'Compare two runs'],
      ['budget', 'Alerts'],
      ['prompt', 'Prompts'],
    ] as const) {
      await page.keyboard.press('ControlOrMeta+k')
      await page.getByRole('combobox', { name: /^Page, policy/ }).fill(text)
      await page.getByRole('option', { selected: true }).filter({ hasText: name }).waitFor()
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
    // An act opens its dialog from any page. Afterwards, the page's address is restored.
    await page.keyboard.press('ControlOrMeta+k')
    await page.getByRole('combobox', { name: /^Page, policy/ }).fill('invite')
    await page.keyboard.press('Enter')
    await page
      .getByRole('dialog', { name: /^Invite a person/ })
      .getByLabel('E-mail')
      .waitFor()
    await page.waitForURL(/settings\/people$/)
    await close()
  })

  test('keys of one character can be switched off, and stay off in this browser', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/settings/api-keys`)
    await page.getByRole('button', { name: 'New key' }).waitFor()
    await page.keyboard.press('?')
    const keys = page.getByRole('dialog', { name: 'Keys' })
    await assertFine(page, 'keys', 'light')
    await keys.getByRole('checkbox', { name: 'Keys of one character' }).uncheck()
    await page.keyboard.press('Escape')
    await keys.waitFor({ state: 'detached' })
    await assertOnlyPalette(page)
    await page.reload()
    await page.getByRole('button', { name: 'New key' }).waitFor()
    await assertOnlyPalette(page)
    await page.getByRole('button', { name: /^Account of/ }).press('Enter')
    await page.getByRole('button', { name: 'Keys', exact: true }).press('Enter')
    await keys.getByRole('checkbox', { name: 'Keys of one character' }).check()
    await page.keyboard.press('Escape')
    await keys.waitFor({ state: 'detached' })
    await page.keyboard.press('n')
    await page.getByRole('dialog', { name: 'New API key' }).waitFor()
    await close()
  })

  test('a key works on a checkbox, which takes no text', async () => {
    await tacho.service.record([event({ runId: 'with-columns' })])
    const { page, close } = await tacho.open(`${tacho.home}/runs`)
    await page.getByRole('button', { name: 'Columns' }).click()
    await page.getByRole('checkbox').first().focus()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await close()
  })

  test('an outage leaves on screen what was read, and says so', async () => {
    await tacho.service.record([event({ runId: 'read-before' })])
    const { page } = await tacho.open(`${tacho.home}/runs`)
    const row = page.getByRole('link', { name: 'read-before' })
    await row.waitFor()
    await page.route('**/operator/v1/**', (route) => route.abort())
    await page.getByText('The server does not answer.').waitFor()
    assert.ok(await row.isVisible())
    await page.unroute('**/operator/v1/**')
    await page.getByText('The server does not answer.').waitFor({ state: 'detached' })
    // The browser logs the requests that failed, which fails `close`.
    await page.context().close()
  })

  test('an address that is no page has a main region', async () => {
    const { page, close } = await tacho.open(`${tacho.service.url}/nowhere`)
    await page.getByRole('main').getByRole('heading', { name: 'There is nothing here' }).waitFor()
    await close()
  })

  /** Asserts that no key opened a dialog: with an open dialog, Ctrl K would not open the palette. */
  async function assertOnlyPalette(page: Page): Promise<void> {
    for (const key of ['?', 'n', 'Control+k']) await page.keyboard.press(key)
    await page.getByRole('dialog', { name: 'Go to' }).waitFor()
    assert.equal(await page.getByRole('dialog').count(), 1)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }

  test('tabs look alike, whether they are pages or parts of one', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/runs`)
    const look = (tab: ReturnType<Page['getByRole']>) =>
      tab.evaluate((element) => {
        const { borderBottomColor, borderBottomWidth, fontSize, fontWeight, color } = getComputedStyle(element)
        return { borderBottomColor, borderBottomWidth, fontSize, fontWeight, color }
      })
    const pages = page.getByRole('navigation', { name: 'Runs' })
    const chosen = await look(pages.locator('[aria-current=page]').filter({ hasText: 'All' }))
    const other = await look(pages.getByRole('link', { name: 'By session' }))
    assert.notDeepEqual(chosen, other)
    await page.goto(`${tacho.home}/issues`)
    const parts = page
      .getByRole('main')
      .getByRole('group')
      .filter({ has: page.locator('button[aria-pressed=true]') })
    assert.deepEqual(await look(parts.first().getByRole('button', { pressed: true })), chosen)
    assert.deepEqual(await look(parts.first().getByRole('button', { pressed: false }).first()), other)
    await close()
  })

  test('keys are listed by name, those that have ended last', async () => {
    const { environmentId } = tacho.service
    for (const name of ['worker 2', 'billing', 'worker 10', 'an old one']) {
      const body = { name, scopes: ['events:write'] }
      const made = await tacho.service.operator<{ id: string }>(`/environments/${environmentId}/keys`, { body })
      if (name === 'an old one') {
        const revoke = `/environments/${environmentId}/keys/${made.body.id}/revoke`
        assert.equal((await tacho.service.operator(revoke, { method: 'POST' })).status, 200)
      }
    }
    const { page, close } = await tacho.open(`${tacho.home}/settings/api-keys`)
    const rows = page.getByRole('table', { name: 'API keys' }).getByRole('row')
    await rows.filter({ hasText: 'worker 10' }).waitFor()
    const names = await rows.locator('td:first-child bdi').allTextContents()
    const ours = names.filter((name) => /^(worker|billing|an old)/.test(name))
    assert.deepEqual(ours, ['billing', 'worker 2', 'worker 10', 'an old one'])
    await close()
  })

  test('a window that another test has used holds nothing of it', async () => {
    const first = await tacho.open(tacho.home, { viewport: { width: 390, height: 700 } })
    await first.page.evaluate(() => {
      localStorage.setItem('left', '1')
      sessionStorage.setItem('left', '1')
      window.name = 'left'
    })
    await first.page.emulateMedia({ media: 'print', colorScheme: 'dark' })
    let asked = 0
    await first.page.route('**', (route) => (asked++, route.continue()))
    first.page.on('request', () => asked++)
    await first.page.goto(`${tacho.home}/policies`)
    await first.close()
    const before = asked
    const { page, close } = await tacho.open(`${tacho.service.url}/sign-in`, { signedOut: true })
    assert.equal(page, first.page, 'the window is used again')
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    const left = await page.evaluate(() => ({
      stored: [localStorage.getItem('left'), sessionStorage.getItem('left'), window.name, document.cookie],
      look: ['print', '(prefers-color-scheme: dark)'].map((query) => matchMedia(query).matches),
      visited: history.length,
      width: innerWidth,
    }))
    assert.deepEqual(left, { stored: [null, null, '', ''], look: [false, false], visited: 2, width: 1280 })
    assert.deepEqual(await page.context().cookies(), [])
    assert.equal(asked, before)
    await close()
  })
})
