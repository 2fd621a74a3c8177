/** A Chromium in which a user is signed in to a server. */
import { existsSync } from 'node:fs'
import { chromium, type Browser, type Page } from 'playwright-core'
import type { Server } from '../server.ts'

const PLACES = [
  process.env['TEST_CHROMIUM'],
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/google-chrome',
  chromium.executablePath(),
]

export const CHROMIUM = PLACES.find((place) => place !== undefined && existsSync(place)) ?? null

const PASSWORD = 'correct horse battery staple'

export async function startChromium(): Promise<Browser & AsyncDisposable> {
  if (CHROMIUM === null) throw new Error('There is no Chromium: install it, or set TEST_CHROMIUM to its path')
  // In a container, root cannot use the sandbox.
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
}

/** The session cookie of a new owner. */
export async function newSession(server: Server): Promise<{ name: string; value: string; url: string }[]> {
  const email = 'ada@example.com'
  const { link } = await server.operator<{ link: string }>('/invitations', { email, role: 'owner' })
  await post(server, '/invitations/accept', { token: link.split('#')[1], password: PASSWORD })
  const reply = await post(server, '/sign-in', { email, password: PASSWORD })
  return reply.headers.getSetCookie().map((line) => {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    return { name, value, url: server.url }
  })
}

async function post({ url }: Server, path: string, body: unknown): Promise<Response> {
  const headers = { origin: url, 'content-type': 'application/json' }
  const reply = await fetch(`${url}/operator/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`)
  return reply
}

// Code for the page is a text, because nothing else here knows a page's types.

/** Clicks the link, and waits in the page for the first content of the next page. Returns milliseconds. */
export function clickUntil(page: Page, link: string, shown: string): Promise<number> {
  return page.evaluate<number>(`new Promise((resolve, reject) => {
    const begun = performance.now()
    document.querySelector(${JSON.stringify(link)})?.click()
    const look = () => {
      const took = performance.now() - begun
      if (document.querySelector(${JSON.stringify(shown)})) resolve(took)
      else if (took > 30_000) reject(new Error('It did not appear'))
      else requestAnimationFrame(look)
    }
    look()
  })`)
}

export function countNodes(page: Page): Promise<number> {
  return page.evaluate<number>("document.querySelectorAll('*').length")
}

/** Starts to record the milliseconds between frames. */
export async function watchFrames(page: Page): Promise<() => Promise<number[]>> {
  await page.evaluate(`{
    const frames = (window.benchFrames = [])
    let last = performance.now()
    const next = (now) => {
      frames.push(now - last)
      last = now
      requestAnimationFrame(next)
    }
    requestAnimationFrame(next)
  }`)
  return () => page.evaluate<number[]>('window.benchFrames.slice(2)')
}

/** Megabytes of the page's JavaScript heap, after garbage collection. */
export async function heapOf(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page)
  await session.send('HeapProfiler.collectGarbage')
  const { usedSize } = await session.send('Runtime.getHeapUsage')
  await session.detach()
  return usedSize / 1e6
}
