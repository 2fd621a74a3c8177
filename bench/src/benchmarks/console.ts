/** The console in a real browser. */
import { execFileSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Page, Request } from 'playwright-core'
import { LIST_SCRIPT, scriptOf, startBarePage } from '../bare/page.ts'
import type { Benchmark } from '../benchmark.ts'
import { clickUntil, countNodes, heapOf, newSession, startChromium, watchFrames } from '../load/browser.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import { newPlot, runIdOf } from '../load/shapes.ts'
import { ROOT } from '../place.ts'
import { startLoad } from '../load/start.ts'
import { below, row } from '../result.ts'
import { inTurn } from '../rounds.ts'
import { startServer, type Server } from '../server.ts'

const DIST = path.join(ROOT, 'packages/console/dist')
const LIVE_PER_SECOND = 50

export const consolePages: Benchmark = {
  name: 'console',
  title: 'The console in Chromium',
  part: 'process',
  about: [
    'A headless Chromium opens the console of an embedded store. Cold start: from the request for the page, with an empty cache, until its navigation \
can be clicked; the bare limit is a page that loads as many bytes of script from a bare HTTP server. Page to page: between runs and \
approvals, both visited before. The long run has 30,000 events and failed at its end: from the click on it until its page says why, and how many requests that takes; in a second visit until its steps are shown, then 60 turns of \
the wheel and 60 presses of j; the bare limit of its frames is a page without a framework that draws as many rows \
of one text in the same way, only those in sight. Live: 50 events a second for a minute are recorded into the run that is shown. Frames are measured with \
requestAnimationFrame; a headless browser draws without a graphics processor.',
  ],
  run: async (setting) => {
    const { plan, place } = setting
    execFileSync(path.join(ROOT, 'scripts/node'), [path.join(ROOT, 'scripts/build-console.mjs')])
    await using server = await startServer(path.join(place, 'store'))
    await using load = startLoad()
    const plot = newPlot('long-run')
    await load.fill(server, plot, plan.longRunEvents / BATCH_EVENTS)
    await record(server, failedEnd(runIdOf(plot, 0)))
    const cookies = await newSession(server)
    const shell = shellFiles()
    await using bare = await startBarePage(scriptOf(shell.bytes))
    await using bareList = await startBarePage(LIST_SCRIPT)
    await using browser = await startChromium()
    const home = `${server.url}/w/default/development`
    const longRun = `main a[href$="/${runIdOf(plot, 0)}"]`

    /** Runs `work` on a browser page with an empty cache. */
    async function onPage<Figures>(work: (page: Page) => Promise<Figures>): Promise<Figures> {
      await using context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
      await context.addCookies(cookies)
      return await work(await context.newPage())
    }

    async function visit(page: Page) {
      const start = await timed(() => page.goto(`${home}/runs`), page, 'nav a')
      await page.locator('main a[href*="/runs/"]').first().waitFor()
      await clickUntil(page, 'nav a[href$="/approvals"]', 'nav a[href$="/approvals"][data-status=active]')
      await page.locator('h1').first().waitFor()
      const change = await clickUntil(page, 'nav a[href$="/runs"]', 'main [role=table][aria-label="Runs"]')
      const run = await clickUntil(page, longRun, '[role=listitem][aria-setsize]')
      return { start, change, run, frame: await worstFrame(page, plan.turns), nodes: await countNodes(page) }
    }
    /** Opens a failed run with an empty cache. */
    async function visitFailed(page: Page) {
      await page.goto(`${home}/runs`)
      await page.locator(longRun).waitFor()
      return tellsWhy(page, longRun)
    }
    async function visitBare() {
      const start = await onPage((page) => timed(() => page.goto(bare.url), page, 'nav a'))
      const frame = await onPage(async (page) => {
        await page.goto(bareList.url)
        return worstFrame(page, plan.turns)
      })
      return { start, frame }
    }
    const { console: ours, bare: limit } = await inTurn(setting, {
      console: async () => ({ ...(await onPage(visit)), ...(await onPage(visitFailed)) }),
      bare: visitBare,
    })
    const live = await onPage(async (page) => {
      await page.goto(`${home}/runs/live`)
      return followLive(server, page, 3 * plan.idleSeconds)
    })
    return {
      rows: [
        row('script of the shell, gzipped', 'kB', [shell.gzipped / 1_000], null, below(150)),
        row('interactive on a cold start', 'ms', ours.start, limit.start, below(1_000)),
        row('page to page, with data kept', 'ms', ours.change, null, below(100)),
        row('failed long run says why it failed', 'ms', ours.why, null, below(1_000)),
        row('requests until then', 'requests', ours.asked, null, below(11)),
        row('long run on the screen', 'ms', ours.run, null, below(1_000)),
        row('longest frame while scrolling and stepping through it', 'ms', ours.frame, limit.frame, below(50)),
        row('DOM nodes of it', 'nodes', ours.nodes, null, below(3_000)),
        row('live run: frame, 99th percentile', 'ms', [live.frameP99]),
        row('live run: JavaScript heap after a third of the time', 'MB', [live.before]),
        row('live run: JavaScript heap at the end', 'MB', [live.after]),
      ],
      notes: [],
    }
  },
}

async function timed(go: () => Promise<unknown>, page: Page, shown: string): Promise<number> {
  const begun = performance.now()
  await Promise.all([go(), page.locator(shown).first().waitFor()])
  return performance.now() - begun
}

/**
 * Milliseconds from the click on a failed run until its page shows the reason, and the requests to the server until
 * then.
 */
async function tellsWhy(page: Page, link: string): Promise<{ why: number; asked: number }> {
  let asked = 0
  const count = (request: Request) => void (asked += request.url().includes('/operator/v1/') ? 1 : 0)
  page.on('request', count)
  const why = await clickUntil(page, link, '[role=note][aria-label="Why it failed"]')
  page.off('request', count)
  return { why, asked }
}

/** The last events of a run with a failed tool. */
function failedEnd(runId: string): object[] {
  const exception = { type: 'PaymentError', message: 'payment provider answered 503' }
  const error = `${exception.type}: ${exception.message}`
  const at = { clientId: 'bench', runId, agentName: 'Shop support', timestamp: Date.now() }
  return [
    {
      ...at,
      eventId: 'failed call',
      eventType: 'TOOL_CALL',
      label: 'pay',
      payload: { toolName: 'pay', error, exception },
    },
    {
      ...at,
      eventId: 'failed',
      eventType: 'SESSION_OUTCOME',
      label: 'FAILED',
      payload: { status: 'FAILED', error, exception },
    },
  ]
}

async function record({ url, headers }: Server, events: object[]): Promise<void> {
  const reply = await fetch(`${url}/openapi/v1/events/batch`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(events),
  })
  if (!reply.ok) throw new Error(`The events could not be recorded: ${reply.status}`)
}

/** The longest frame during this many wheel turns and as many key presses. */
async function worstFrame(page: Page, turns: number): Promise<number> {
  await page.locator('[role=listitem][aria-setsize]').first().hover()
  const frames = await watchFrames(page)
  for (let turn = 0; turn < turns; turn++) await page.mouse.wheel(0, 600)
  for (let press = 0; press < turns; press++) await page.keyboard.press('j')
  return Math.max(...(await frames()))
}

/** Records events of the run `live` while the page shows it. */
async function followLive(server: Server, page: Page, seconds: number) {
  const recordSteps = async (from: number, count: number) => {
    const now = Date.now()
    const events = Array.from({ length: count }, (_, index) => ({
      eventId: String(from + index),
      clientId: 'bench',
      runId: 'live',
      agentName: 'Live',
      eventType: 'AGENT_STEP',
      label: `Step ${from + index}`,
      timestamp: now + index,
      payload: { text: 'Reads the next page of the book.' },
    }))
    await record(server, events)
  }
  await recordSteps(0, LIVE_PER_SECOND)
  await page.reload()
  await page.locator('[role=listitem][aria-setsize]').first().waitFor()
  const frames = await watchFrames(page)
  const each = 5
  const rounds = Math.max(3, Math.round((seconds * LIVE_PER_SECOND) / each))
  const begun = performance.now()
  let before = 0
  for (let round = 0; round < rounds; round++) {
    await recordSteps(LIVE_PER_SECOND + round * each, each)
    if (round === Math.floor(rounds / 3)) before = await heapOf(page)
    await sleep(Math.max(0, begun + ((round + 1) * 1_000 * each) / LIVE_PER_SECOND - performance.now()))
  }
  const all = (await frames()).toSorted((a, b) => a - b)
  return { before, after: await heapOf(page), frameP99: all[Math.floor(all.length * 0.99)] ?? Number.NaN }
}

/** The scripts that the page itself names. */
function shellFiles(): { bytes: number; gzipped: number } {
  const html = readFileSync(path.join(DIST, 'index.html'), 'utf8')
  const files = [...html.matchAll(/"\.\/(assets\/[^"]+\.js)"/g)].map(([, file = '']) => path.join(DIST, file))
  const sizeOf = (ending: string) => files.reduce((sum, file) => sum + statSync(file + ending).size, 0)
  return { bytes: sizeOf(''), gzipped: sizeOf('.gz') }
}
