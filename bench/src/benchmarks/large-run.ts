/** Reading a run with a great number of events. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { readTimeline } from '../bare/reading.ts'
import { withSql } from '../bare/sql.ts'
import type { Benchmark } from '../benchmark.ts'
import { openSqlite } from '../engines/sqlite.ts'
import { connect, requestHead } from '../load/connection.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import { newPlot, runIdOf } from '../load/shapes.ts'
import { startLoad } from '../load/start.ts'
import { below, row } from '../result.ts'
import { inTurn } from '../rounds.ts'
import type { Server } from '../server.ts'
import { spreadOf } from '../stats.ts'
import { megabytes, whole } from '../text.ts'

/** First pages to read: they are fast, so a single one varies too much. */
const FIRST_PAGES = 20

export const largeRun: Benchmark = {
  name: 'large-run',
  title: 'Reading a run of 30,000 events',
  part: 'sqlite',
  about: [
    `One run of 30,000 events is read the way a client reads it: the run with its first 100 events (twenty times), then all further events in pages \
of 200, one after the other. The server has no other load. The bare limit is the same SQL through better-sqlite3 on the same file, without a server.`,
  ],
  run: async (setting) => {
    await using engine = openSqlite(setting)
    const store = await engine.createStore('store')
    await using server = await store.start()
    const { environmentId } = await server.home()
    const { longRunEvents } = setting.plan
    const plot = newPlot('long-run')
    await using load = startLoad()
    await load.fill(server, plot, longRunEvents / BATCH_EVENTS)
    const runId = runIdOf(plot, 0)
    using pages = await openPages(server, runId)

    async function walk<Cursor>(read: ReadPage<Cursor>) {
      const { events, ...times } = await walkRun(read)
      if (events !== longRunEvents) throw new Error(`The run has ${longRunEvents} events and ${events} came back`)
      return times
    }
    const alone = () =>
      withSql(store.at, (sql) =>
        walk<{ time: number; seq: number }>(async (after) => {
          const from = performance.now()
          const limit = after === null ? LIMITS.runDetailEvents : LIMITS.eventsPageMax
          const { rows, more } = await readTimeline(sql, environmentId, runId, limit, after)
          const ms = performance.now() - from
          return { ms, bytes: 0, events: rows.length, after: more ? (rows.at(-1) ?? null) : null }
        }),
      )
    const { server: ours, bare } = await inTurn(
      setting,
      { server: () => walk(pages.read), bare: alone },
      { warmUp: true },
    )
    return {
      rows: [
        row('first page', 'ms', ours.firstPageMs, bare.firstPageMs, below(10)),
        row('all pages', 'ms', ours.allPagesMs, bare.allPagesMs),
      ],
      notes: [`The run has ${whole(ours.pages[0] ?? 0)} pages and ${megabytes(ours.bytes[0] ?? 0)}.`],
    }
  },
}

/** Reads the page after a cursor: the first page if null. */
type ReadPage<Cursor> = (
  after: Cursor | null,
) => Promise<{ ms: number; bytes: number; events: number; after: Cursor | null }>

async function walkRun<Cursor>(read: ReadPage<Cursor>) {
  const firstPages = []
  while (firstPages.length < FIRST_PAGES) firstPages.push((await read(null)).ms)
  const sum = { allPagesMs: 0, pages: 0, bytes: 0, events: 0 }
  let after: Cursor | null = null
  do {
    const page = await read(after)
    sum.allPagesMs += page.ms
    sum.bytes += page.bytes
    sum.events += page.events
    sum.pages++
    after = page.after
  } while (after !== null)
  return { ...sum, firstPageMs: spreadOf(firstPages).median }
}

interface Page {
  items?: unknown[]
  events?: unknown[]
  nextCursor: string | null
}

/** Reads the pages of a run over HTTP. The measured time excludes parsing. */
async function openPages({ url, headers }: Server, runId: string) {
  const connection = await connect(url)
  const read: ReadPage<string> = async (after) => {
    const rest = after === null ? '' : `/events?limit=200&cursor=${encodeURIComponent(after)}`
    const head = requestHead('GET', `${url}/openapi/v1/runs/${runId}${rest}`, headers)
    const from = performance.now()
    const { status, body } = await connection.request([head])
    const ms = performance.now() - from
    if (status !== 200) throw new Error(`${status} ${body.toString()}`)
    const { items, events, nextCursor } = JSON.parse(body.toString()) as Page
    return { ms, bytes: body.length, events: (events ?? items ?? []).length, after: nextCursor }
  }
  return { read, [Symbol.dispose]: () => connection.close() }
}
