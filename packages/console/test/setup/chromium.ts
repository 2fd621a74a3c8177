/** A real Chromium: TEST_CHROMIUM, the system's, or one from Playwright's own installer. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'

const PLACES = [
  process.env['TEST_CHROMIUM'],
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

/** Installs Debian's package where that is possible: as root, with apt. Called once, before the tests of the browser. */
export function installChromium(): void {
  if (CHROMIUM !== null || process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return
  console.log('Installing Chromium…')
  const aptGet = (...args: string[]) =>
    spawnSync('apt-get', args, {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      stdio: 'ignore',
      timeout: INSTALL_MS,
    })
  const install = () => aptGet('install', '-y', '--no-install-recommends', 'chromium', 'fonts-dejavu-core').status === 0
  if (install()) return
  aptGet('update')
  install()
}
