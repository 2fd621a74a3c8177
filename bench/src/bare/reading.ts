/** The limit of reading: runs the server's queries for a page through the driver alone. */
import { setTimeout as sleep } from 'node:timers/promises'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { listEvents } from '@tacho/server/storage/sql/record/events.ts'
import { findRun, listRuns } from '@tacho/server/storage/sql/runs/runs.ts'
import type { Sql } from '@tacho/server/storage/sql/engine/sql.ts'
import { timesOf, type Times } from '../stats.ts'

type Place = { time: number; seq: number } | null

export async function readTimeline(sql: Sql, environmentId: string, runId: string, limit: number, after: Place = null) {
  const run = await findRun(sql, environmentId, runId)
  if (run === null) throw new Error(`There is no run ${runId}`)
  return listEvents(sql, environmentId, run.id, { pageBytes: LIMITS.pageBytes, limit, after })
}

/** Pages for the reads benchmark: lists of runs, or timelines of these runs. */
export interface PagesAlone {
  environmentId: string
  pages: 'lists' | { timelines: string[] }
  seconds: number
  perSecond: number
}

/** Reads one page after another at fixed times. Only the reading itself is measured, even if it starts late. */
export async function readAlone(sql: Sql, { environmentId, pages, seconds, perSecond }: PagesAlone): Promise<Times> {
  const reads =
    pages === 'lists'
      ? await listReads(sql, environmentId)
      : pages.timelines.map((runId) => () => readTimeline(sql, environmentId, runId, LIMITS.eventsPageDefault))
  const took: number[] = []
  const begun = performance.now()
  for (let n = 0; performance.now() - begun < seconds * 1000; n++) {
    await sleep(Math.max(0, begun + (n * 1000) / perSecond - performance.now()))
    const from = performance.now()
    await reads[n % reads.length]?.()
    took.push(performance.now() - from)
  }
  return timesOf(took)
}

/** Reads the same lists as the requests over HTTP: the first page, by status, by agent, and a page further back. */
async function listReads(sql: Sql, environmentId: string): Promise<(() => Promise<unknown>)[]> {
  const { rows: newest } = await listRuns(sql, environmentId, {}, { limit: LIMITS.runsPageMax, after: null })
  const [first, last] = [newest[0], newest.at(-1)]
  if (first === undefined || last === undefined) throw new Error('There are no runs')
  const page = { limit: LIMITS.runsPageDefault, after: null }
  return [
    () => listRuns(sql, environmentId, {}, page),
    () => listRuns(sql, environmentId, { status: 'FAILED' }, page),
    () => listRuns(sql, environmentId, { agentId: first.agentId }, page),
    () => listRuns(sql, environmentId, {}, { ...page, after: { startedAt: last.startedAt, id: last.id } }),
  ]
}
