/** Requests pages, in a process of its own, and checks each reply. */
import { answer } from '../child.ts'
import { spreadOf, type Times } from '../stats.ts'
import { requestHead, withConnections, type Connection, type Reply } from './connection.ts'
import { paceRequests } from './pace.ts'

export interface ReadLoad {
  url: string
  apiKey: string
  /** Paths below the prefix, requested in turn. */
  paths: string[]
  connections: number
  seconds: number
  /** Requests a second; by default, as many as the server answers. */
  perSecond?: number
  /** The fewest items that each reply must have. */
  items: number
}

export interface WalkLoad {
  url: string
  apiKey: string
  /** The run whose every page is read. */
  walk: string
  events: number
}

export interface WalkTimes {
  /** Median of several. */
  firstPageMs: number
  allPagesMs: number
  pages: number
  bytes: number
}

/** First pages are quick, so one alone says little. */
const FIRST_PAGES = 20

interface Page {
  items?: unknown[]
  events?: unknown[]
  nextCursor: string | null
}

const PREFIX = '/openapi/v1'

answer<ReadLoad | WalkLoad, Times | WalkTimes>((load) => ('walk' in load ? walkRun(load) : readPages(load)))

async function readPages({ url, apiKey, paths, connections, seconds, perSecond, items }: ReadLoad): Promise<Times> {
  const heads = paths.map((path) => requestHead('GET', `${url}${PREFIX}${path}`, { 'x-api-key': apiKey }))
  const checked = new Set<number>()
  let asked = 0
  async function send(connection: Connection): Promise<void> {
    const place = asked++ % heads.length
    const reply = await connection.request([heads[place] ?? Buffer.alloc(0)])
    if (reply.status !== 200) throw new Error(`${paths[place]}: ${reply.status} ${reply.body.toString()}`)
    // Parsing costs this process more than the request, so each path is checked once.
    if (checked.has(place)) return
    checked.add(place)
    const found = pageOf(reply).items?.length ?? 0
    if (found < items) throw new Error(`${paths[place]}: ${found} items`)
  }
  const paced = await withConnections(url, connections, (lanes) => paceRequests(lanes, { seconds, perSecond }, send))
  return paced.times
}

/** Reads a whole run like a client: its detail, then its further events page by page. */
async function walkRun(load: WalkLoad): Promise<WalkTimes> {
  return withConnections(load.url, 1, ([connection]) => walkOn(connection as Connection, load))
}

async function walkOn(connection: Connection, { url, apiKey, walk, events }: WalkLoad): Promise<WalkTimes> {
  async function ask(path: string) {
    const from = performance.now()
    const reply = await connection.request([requestHead('GET', `${url}${PREFIX}${path}`, { 'x-api-key': apiKey })])
    return { ms: performance.now() - from, bytes: reply.body.length, page: pageOf(reply) }
  }
  const firstPages = []
  while (firstPages.length < FIRST_PAGES) firstPages.push((await ask(`/runs/${walk}`)).ms)

  let { ms, bytes, page } = await ask(`/runs/${walk}`)
  const sum = { ms, bytes, pages: 1, events: page.events?.length ?? 0 }
  while (page.nextCursor !== null) {
    ;({ ms, bytes, page } = await ask(`/runs/${walk}/events?limit=200&cursor=${encodeURIComponent(page.nextCursor)}`))
    sum.ms += ms
    sum.bytes += bytes
    sum.pages++
    sum.events += page.items?.length ?? 0
  }
  if (sum.events !== events) throw new Error(`The run has ${events} events and ${sum.events} came back`)
  return { firstPageMs: spreadOf(firstPages).median, allPagesMs: sum.ms, pages: sum.pages, bytes: sum.bytes }
}

function pageOf({ status, body }: Reply): Page {
  if (status !== 200) throw new Error(`${status} ${body.toString()}`)
  return JSON.parse(body.toString()) as Page
}
