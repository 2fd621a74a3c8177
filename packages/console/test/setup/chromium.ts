/**
 * A real Chromium: TEST_CHROMIUM, the system's, or one from Playwright's own installer. The headless shell comes first: it
 * is the same engine without the browser's windows, and opens a page in a third of the time.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'

const HEADLESS_SHELL = '/usr/bin/chromium-headless-shell'
const PLACES = [
  process.env['TEST_CHROMIUM'],
  HEADLESS_SHELL,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  chromium.executablePath(),
]
const INSTALL_MS = 240_000

export const CHROMIUM = findChromium()

/** Why tests in a browser are skipped, or false. */
export const withoutChromium =
  CHROMIUM === null ? 'no Chromium found: install the package chromium, or set TEST_CHROMIUM to the path of one' : false

function findChromium(): string | null {
  return PLACES.find((place) => place !== undefined && existsSync(place)) ?? null
}

/**
 * Installs Debian's headless shell, or its whole Chromium where there is no shell: as root, with apt. Called once, before
 * the tests of the browser.
 */
export function installChromium(): void {
  if (CHROMIUM === process.env['TEST_CHROMIUM'] || CHROMIUM === HEADLESS_SHELL) return
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return
  console.log('Installing a headless Chromium…')
  const aptGet = (...args: string[]) =>
    spawnSync('apt-get', args, {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      stdio: 'ignore',
      timeout: INSTALL_MS,
    }).status === 0
  const install = (name: string) => aptGet('install', '-y', '--no-install-recommends', name, 'fonts-dejavu-core')
  if (install('chromium-headless-shell') || CHROMIUM !== null) return
  aptGet('update')
  if (!install('chromium-headless-shell')) install('chromium')
}
