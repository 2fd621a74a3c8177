/**
 * Windows of one browser, which tests use one after another. A page in a new window takes a second of processor time, and a
 * third of that in a window that has shown the console before, because its process runs and has compiled the console.
 *
 *   new ──► in use ──► waiting: shows an empty page, stores nothing ──► in use
 *              └─────► closed: had a fault, or was changed for good
 */
import assert from 'node:assert/strict'
import type { Browser, BrowserContext, BrowserContextOptions, CDPSession, Page } from 'playwright-core'

const WAIT_MS = 60_000

export type WindowOptions = BrowserContextOptions & { viewport?: { width: number; height: number } }
export type Cookies = { name: string; value: string; url: string }[]

interface TestWindow {
  context: BrowserContext
  page: Page
  devTools: CDPSession
  /** Windows with the same text can replace each other. */
  kind: string
  /** A test called what only a new window undoes. */
  isChanged: boolean
}

export interface OpenPage {
  page: Page
  /** Fails for a dialog, a console error, a violation of the Content-Security-Policy, or a request to another origin. */
  close(): Promise<void>
}

/** `serverUrl`: only windows that called no other server are used again. */
export function testWindows(browser: Browser, serverUrl: string) {
  const waiting: TestWindow[] = []

  /** `origin`: the only server that the page may call. */
  return async function open(
    address: string,
    origin: string,
    cookies: Cookies,
    { viewport = { width: 1280, height: 800 }, colorScheme = 'light', ...options }: WindowOptions,
  ): Promise<OpenPage> {
    const kind = JSON.stringify(options)
    const known = waiting.findIndex((window) => window.kind === kind)
    const window = known < 0 ? await newWindow(browser, kind, options) : waiting.splice(known, 1)[0]!
    const { page, context } = window
    await page.setViewportSize(viewport)
    // Otherwise, pulsing marks would make the processor draw sixty times a second.
    await page.emulateMedia({ media: null, colorScheme, reducedMotion: 'reduce' })
    await context.addCookies(cookies)
    const faults: string[] = []
    listFaults(page, origin, faults)
    await page.goto(address)
    return {
      page,
      async close() {
        const isReused = faults.length === 0 && origin === serverUrl && !('permissions' in options)
        // Copy the faults now, because leaving the address can add more.
        const seen = [...faults]
        if (isReused && (await empty(window, serverUrl).catch(() => false))) waiting.push(window)
        else await context.close()
        assert.deepEqual(seen, [])
      },
    }
  }
}

async function newWindow(browser: Browser, kind: string, options: BrowserContextOptions): Promise<TestWindow> {
  const context = await browser.newContext(options)
  context.setDefaultTimeout(WAIT_MS)
  const page = await context.newPage()
  const devTools = await context.newCDPSession(page)
  await slowDown(devTools)
  const window: TestWindow = { context, page, devTools, kind, isChanged: false }
  const noteCalls = (target: object, ...names: string[]) => {
    for (const name of names) {
      const method = Reflect.get(target, name) as (...args: unknown[]) => unknown
      Reflect.set(target, name, (...args: unknown[]) => {
        window.isChanged = true
        return method.apply(target, args)
      })
    }
  }
  noteCalls(page, 'addInitScript', 'exposeBinding', 'exposeFunction', 'setExtraHTTPHeaders')
  noteCalls(context, 'addInitScript', 'exposeBinding', 'exposeFunction', 'setExtraHTTPHeaders')
  noteCalls(context, 'grantPermissions', 'newCDPSession', 'newPage', 'route', 'setGeolocation', 'setOffline')
  noteCalls(page.clock, 'install', 'pauseAt', 'setFixedTime', 'setSystemTime')
  return window
}

const PAGE_EVENTS = ['console', 'dialog', 'download', 'framenavigated', 'load', 'pageerror', 'popup', 'worker']
const NETWORK_EVENTS = ['request', 'requestfailed', 'requestfinished', 'response', 'websocket']

/** Makes a window like a new one. False if that is not possible. */
async function empty({ page, context, devTools, isChanged }: TestWindow, serverUrl: string): Promise<boolean> {
  if (isChanged || context.pages().length > 1 || context.serviceWorkers().length > 0) return false
  for (const name of [...PAGE_EVENTS, ...NETWORK_EVENTS]) page.removeAllListeners(name)
  await page.unrouteAll()
  // A page of the same server, because the browser would start another process for about:blank.
  await page.goto(`${serverUrl}/healthz`)
  await page.evaluate(() => {
    localStorage.clear()
    sessionStorage.clear()
    window.name = ''
  })
  await context.clearCookies()
  // Move the pointer away from all elements.
  await page.mouse.move(-1, -1)
  await devTools.send('Page.resetNavigationHistory')
  return true
}

function listFaults(page: Page, origin: string, faults: string[]): void {
  page.on('console', (message) => {
    // The browser also logs refusals that the page handles.
    const isRefusal = message.text().startsWith('Failed to load resource: the server responded with a status of 4')
    if (message.type() === 'error' && !isRefusal) faults.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`))
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(origin) && !url.startsWith('data:')) faults.push(`request: ${url}`)
  })
}

/** TEST_SLOW=<times> makes the browser that many times slower, and delays the server's answers. */
async function slowDown(devTools: CDPSession): Promise<void> {
  const rate = Number(process.env['TEST_SLOW'] ?? 1)
  if (rate <= 1) return
  await devTools.send('Emulation.setCPUThrottlingRate', { rate })
  const unlimited = { downloadThroughput: -1, uploadThroughput: -1 }
  await devTools.send('Network.emulateNetworkConditions', { offline: false, latency: rate * 50, ...unlimited })
}
