/** What the server asks of its store for a page, over the adapter of either engine. */
import { setTimeout as sleep } from 'node:timers/promises'
import { LIMITS } from '@tacho/contract/limits.ts'
import { listEvents } from '@tacho/server/storage/sql/events.ts'
import { findRun, listRuns } from '@tacho/server/storage/sql/runs/runs.ts'
import type { Sql } from '@tacho/server/storage/sql/sql.ts'
import type { WalkTimes } from '../load/read-load.ts'
import { spreadOf, timesOf, type Times } from '../stats.ts'

export interface BareReads {
  /** `runs`, or timelines of the runs that are named. */
  read: 'runs' | { timelines: string[] }
  seconds: number
  perSecond: number
}

export interface BareWalk {
  walk: string
}

const FIRST_PAGES = 20
const PAGE = { pageBytes: LIMITS.pageBytes, after: null }

export function readsOf(sql: Sql, environmentId: string) {
  async function timeline(runId: string, page: { limit: number; after: { time: number; seq: number } | null }) {
    const run = await findRun(sql, environmentId, runId)
    if (run === null) throw new Error(`There is no run ${runId}`)
    return listEvents(sql, environmentId, run.id, { ...PAGE, ...page })
  }

  /** The same lists as are asked for over HTTP: from the start, by status, by agent, and from far behind. */
  async function listers(): Promise<(() => Promise<unknown>)[]> {
    const limit = LIMITS.runsPageDefault
    const { rows: newest } = await listRuns(sql, environmentId, {}, { limit: LIMITS.runsPageMax, after: null })
    const [first, last] = [newest[0], newest.at(-1)]
    if (first === undefined || last === undefined) throw new Error('There are no runs')
    const { agentId } = first
    return [
      () => listRuns(sql, environmentId, {}, { limit, after: null }),
      () => listRuns(sql, environmentId, { status: 'FAILED' }, { limit, after: null }),
      () => listRuns(sql, environmentId, { agentId }, { limit, after: null }),
      () => listRuns(sql, environmentId, {}, { limit, after: { startedAt: last.startedAt, id: last.id } }),
    ]
  }

  return {
    async pages({ read, seconds, perSecond }: BareReads): Promise<Times> {
      const asks =
        read === 'runs'
          ? await listers()
          : read.timelines.map((runId) => () => timeline(runId, { limit: LIMITS.eventsPageDefault, after: null }))
      const begun = performance.now()
      const took: number[] = []
      for (let asked = 0; performance.now() - begun < seconds * 1000; asked++) {
        await sleep(Math.max(0, begun + (asked * 1000) / perSecond - performance.now()))
        const from = performance.now()
        await asks[asked % asks.length]?.()
        took.push(performance.now() - from)
      }
      return timesOf(took)
    },

    async walk({ walk }: BareWalk): Promise<WalkTimes> {
      const firstPages = []
      while (firstPages.length < FIRST_PAGES) {
        const from = performance.now()
        await timeline(walk, { limit: LIMITS.runDetailEvents, after: null })
        firstPages.push(performance.now() - from)
      }
      const from = performance.now()
      let page = await timeline(walk, { limit: LIMITS.runDetailEvents, after: null })
      let pages = 1
      while (page.more) {
        const after = page.rows.at(-1) ?? null
        page = await timeline(walk, { limit: LIMITS.eventsPageMax, after })
        pages++
      }
      const allPagesMs = performance.now() - from
      return { firstPageMs: spreadOf(firstPages).median, allPagesMs, pages, bytes: 0 }
    },
  }
}
