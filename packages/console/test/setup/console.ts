/** The built console, served by a real server, in a real browser. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { AxeResults, RunOptions } from 'axe-core'
import { chromium, type BrowserContextOptions, type Page } from 'playwright-core'
import type { Flags } from '../../../server/src/config/config.ts'
import { newPerson, PASSWORD, type Browser as Person } from '../../../server/test/http/people/browser.ts'
import { startService, type Service } from '../../../server/test/setup/service.ts'
import { CHROMIUM } from './chromium.ts'
import { testWindows, type OpenPage, type WindowOptions } from './windows.ts'

export const EMAIL = 'ada@example.com'
export { PASSWORD }

export interface TestConsole {
  service: Service
  /** Address of the pages of the first environment. */
  home: string
  /**
   * Opens a window, signed in as the owner or as another person, or signed out. Closing it fails the test if the page did
   * something forbidden, such as an error on the browser console.
   */
  open(
    address?: string,
    options?: WindowOptions & { as?: Person; signedOut?: boolean; origin?: string },
  ): Promise<OpenPage>
  close(): Promise<void>
}

export async function startConsole(flags: Flags = {}, now: () => number = Date.now): Promise<TestConsole> {
  // Builds it if a source is newer.
  await import('../../../../scripts/build-console.mjs')
  assert.ok(CHROMIUM)
  const service = await startService(flags, now)
  const [browser, person] = await Promise.all([
    // A container has no sandbox for root.
    chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] }),
    newPerson(service, EMAIL, 'owner', null),
  ])
  const cookiesOf = ({ cookies }: Person) => [...cookies].map(([name, value]) => ({ name, value, url: service.url }))
  const home = `${service.url}/w/default/development`
  const openWindow = testWindows(browser, service.url)
  return {
    service,
    home,
    open: (address = home, { signedOut = false, as = person, origin = new URL(address).origin, ...options } = {}) =>
      openWindow(address, origin, signedOut ? [] : cookiesOf(as), options),
    async close() {
      await browser.close()
      await service.close()
    },
  }
}

/** A page parses it in a third of the time of the package's `source`, which is not minified. */
const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** Report violations only: computing the paths of elements without faults would take half of the time. */
const VIOLATIONS: RunOptions = { resultTypes: ['violations'], selectors: false }

/** The rules of axe for each look: all for the first one, and for others only those that depend on the look. */
const RULES: Record<Look, RunOptions> = {
  light: VIOLATIONS,
  dark: { ...VIOLATIONS, runOnly: ['color-contrast'] },
  phone: { ...VIOLATIONS, rules: { 'color-contrast': { enabled: false } } },
}

/** Asserts that axe finds no accessibility fault. */
export async function assertAccessible(page: Page, where: string, look: Look = 'light'): Promise<void> {
  // Not through a script element, which the Content-Security-Policy refuses.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(AXE)
  // axe checks one rule after another. If the page changed meanwhile, its faults may belong to no single state, so check again.
  for (let looks = 1; ; looks++) {
    // A change of look starts transitions of colours, which take more than two frames on a busy machine.
    await page.waitForFunction(() => document.getAnimations().length === 0)
    const { violations, hasChanged } = await page.evaluate(runAxe, RULES[look])
    if (violations.length > 0 && hasChanged && looks < MOST_LOOKS) continue
    return assert.deepEqual(violations, [], `${where}: ${look}`)
  }
}

/** How often axe checks a page that changes. A page that shows ages in seconds never stops changing. */
const MOST_LOOKS = 5

/** Runs in the page. */
async function runAxe(options: RunOptions) {
  const { axe } = globalThis as unknown as { axe: { run(options: RunOptions): Promise<AxeResults> } }
  let hasChanged = false
  const noteChange = () => void (hasChanged = true)
  const changes = new MutationObserver(noteChange)
  changes.observe(document, { subtree: true, childList: true, attributes: true, characterData: true })
  document.addEventListener('transitionrun', noteChange)
  const { violations } = await axe.run(options)
  // The browser calls the observer after a change, so wait for the changes during the last rule.
  await Promise.resolve()
  changes.disconnect()
  document.removeEventListener('transitionrun', noteChange)
  const faults = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`)
  return { violations: faults, hasChanged }
}

export const PHONE = { viewport: { width: 390, height: 844 } }
type LookOptions = Pick<BrowserContextOptions, 'colorScheme'> & { viewport?: { width: number; height: number } }
const LOOKS: readonly (readonly [Look, LookOptions])[] = [
  ['light', {}],
  ['dark', { colorScheme: 'dark' }],
  ['phone', PHONE],
]
export type Look = 'light' | 'dark' | 'phone'

/**
 * Checks the page in every look without reloading it, because looks differ only in style sheets. Then restores the light look
 * and the first width.
 */
export async function assertLooks(page: Page, where: string): Promise<void> {
  const wide = page.viewportSize()
  for (const [look, { colorScheme = 'light', viewport = wide }] of LOOKS) {
    await page.emulateMedia({ colorScheme })
    if (viewport) await page.setViewportSize(viewport)
    await assertFine(page, where, look)
  }
  await page.emulateMedia({ colorScheme: 'light' })
  if (wide) await page.setViewportSize(wide)
}

/** Presses two keys in one message, because the page forgets the first key after a second. */
export async function pressBoth(page: Page, first: string, second: string): Promise<void> {
  await Promise.all([page.keyboard.press(first), page.keyboard.press(second)])
}

/** A text that does harm if it is used as markup or code. */
export const HARM = '<img src=x onerror="document.title=1"><script>alert(1)</script> \u202Eevil\u202C'

/** Asserts that the page is accessible and no wider than the window. SHOTS=<folder> stores a screenshot. */
export async function assertFine(page: Page, where: string, look: Look): Promise<void> {
  // Wait, because a list draws its rows again after the window has changed.
  const fits = page.waitForFunction(() => document.documentElement.scrollWidth <= window.innerWidth)
  await fits.catch(() => assert.fail(`${where} is wider than the window: ${look}`))
  await assertAccessible(page, where, look)
  const folder = process.env['SHOTS']
  if (folder !== undefined)
    await page.screenshot({ path: path.join(folder, `${where}-${look}.png`.replaceAll(' ', '-')) })
}
