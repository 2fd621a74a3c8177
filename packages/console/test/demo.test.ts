/** Every kind of page with the demo's data: each link of the header and the tabs, and one page of each kind of item. */
import assert from 'node:assert/strict'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { runCommand } from '../../cli/test/tacho.ts'
import { withoutChromium } from './setup/chromium.ts'
import { PHONE, startConsole, type TestConsole } from './setup/console.ts'

const WIDE = { width: 1280, height: 800 }
/** SHOTS=<folder> stores screenshots there. */
const shots = process.env['SHOTS']

describe('the demo', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  let home: string
  before(async () => {
    tacho = await startConsole()
    home = `${tacho.service.url}/w/default/tacho-demo`
    const { url, operatorToken } = tacho.service
    const variables = { TACHO_URL: url, TACHO_OPERATOR_TOKEN: operatorToken }
    const { code, stderr } = await runCommand(['demo', '--seed', 'walk', '--json'], variables)
    assert.equal(code, 0, stderr)
  })
  after(() => tacho.close())

  test('no page has an error, asks another origin, breaks the policy for content, or is wider than a phone', async () => {
    // Closing the window fails the test if a page did something forbidden.
    const { page, close } = await tacho.open(home)
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    const seen = new Set<string>()
    /** Opens an address, and returns the pages that it links to. */
    const visit = async (address: string) => {
      seen.add(address)
      await page.goto(address)
      await page.getByRole('heading', { level: 1 }).first().waitFor()
      // Wait until the skeletons are gone: then the page's data has arrived.
      await page.waitForFunction(
        () => document.querySelector('[aria-label="Loading"], .animate-pulse[class*=bg-hover]') === null,
      )
      assert.equal(await page.getByRole('alert').count(), 0, address)
      const links = await page
        .getByRole('link')
        .evaluateAll((all) => all.map((link) => (link as HTMLAnchorElement).href))
      await page.setViewportSize(PHONE.viewport)
      const fits = page.waitForFunction(() => document.documentElement.scrollWidth <= window.innerWidth)
      await fits.catch(() => assert.fail(`${address} is wider than a phone`))
      if (shots !== undefined) await page.screenshot({ path: path.join(shots, `demo-${seen.size}.png`) })
      await page.setViewportSize(WIDE)
      return links.map((link) => link.split(/[?#]/)[0] ?? '').filter((link) => link.startsWith(`${home}/`))
    }
    const found = [...(await visit(home)), `${home}/search`]
    /** The kind of a page. Of each list, only its first item is opened. Another test opens every page of the settings. */
    const kindOf = (address: string) => {
      const [list = '', thing] = address.slice(home.length + 1).split('/')
      return thing === undefined ? address : `${list}/…`
    }
    const kinds = new Set<string>()
    for (const address of found) {
      if (seen.has(address) || kinds.has(kindOf(address))) continue
      kinds.add(kindOf(address))
      found.push(...(await visit(address)))
    }
    for (const kind of ['runs/…', 'agents/…', 'sessions/…', 'approvals/…', 'issues/…', 'policies/…', 'prompts/…'])
      assert.ok(kinds.has(kind), `no link led to ${kind}`)
    await close()
  })
})
