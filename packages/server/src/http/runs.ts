import { LIMITS } from '@tacho/contract/limits.ts'
import { ROUTES } from '@tacho/contract/routes.ts'
import type { FastifyInstance } from 'fastify'
import type { Deps } from './deps.ts'
import { eventPageJson, runDetailJson, toRun } from '../domain/run.ts'
import type { EventPage, Timeline } from '../storage/events.ts'
import type { RunPage, RunRow } from '../storage/runs.ts'
import { tenantOf } from './api-key.ts'
import { pageFrom, startOf, type Walk } from './paging.ts'
import { isRefusal, refuse, type Refusal } from './reply-error.ts'
import { RawJson, serveRoute } from './serve-route.ts'

type RunPosition = NonNullable<RunPage['after']>
type EventPosition = NonNullable<EventPage['after']>

export function runsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors } = deps

  serveRoute(app, ROUTES.listRuns, deps, async ({ query, request }) => {
    const { environmentId } = tenantOf(request)
    const { limit = LIMITS.runsPageDefault, status, cursor } = query
    const agentId = query.agentId?.toLowerCase()
    const walk = [environmentId, 'runs', agentId, status]
    const start = startOf<RunPosition>(cursors, walk, cursor)
    if (isRefusal(start)) return start
    const filter = { agentId, status, onlyOutcomesEnd: true }
    const page = await storage.listRuns(environmentId, filter, { limit, ...start })
    return pageFrom(page, toRun, ({ startedAt, id }) => cursors.write(walk, { startedAt, id }))
  })

  serveRoute(app, ROUTES.readRun, deps, async ({ params, request }) => {
    const { environmentId } = tenantOf(request)
    const timeline = await readTimeline(environmentId, params.runId, LIMITS.runDetailEvents)
    if (!timeline) return noSuchRun()
    return new RawJson(runDetailJson(timeline.run, timeline.rows, nextCursor(environmentId, timeline)))
  })

  serveRoute(app, ROUTES.listRunEvents, deps, async ({ params, query, request }) => {
    const { environmentId } = tenantOf(request)
    const { cursor, limit = LIMITS.eventsPageDefault } = query
    const timeline =
      cursor === undefined
        ? await readTimeline(environmentId, params.runId, limit)
        : await continueTimeline(environmentId, params.runId, limit, cursor)
    if (isRefusal(timeline)) return timeline
    if (!timeline) return noSuchRun()
    return new RawJson(eventPageJson(timeline.run, timeline.rows, nextCursor(environmentId, timeline)))
  })

  function readTimeline(environmentId: string, runId: string, limit: number): Promise<Timeline | null> {
    return storage.readTimeline(environmentId, runId, { limit, pageBytes: LIMITS.pageBytes })
  }

  async function continueTimeline(
    environmentId: string,
    runId: string,
    limit: number,
    cursor: string,
  ): Promise<Timeline | Refusal | null> {
    const run = await storage.findRun(environmentId, runId)
    if (!run) return null
    const start = startOf<EventPosition>(cursors, eventsWalk(environmentId, run), cursor)
    if (isRefusal(start)) return start
    const page = { limit, pageBytes: LIMITS.pageBytes, ...start }
    return { run, ...(await storage.listEvents(environmentId, run.id, page)) }
  }

  function nextCursor(environmentId: string, { run, rows, more }: Timeline): string | null {
    const last = more ? rows.at(-1) : undefined
    return last ? cursors.write(eventsWalk(environmentId, run), { time: last.time, seq: last.seq }) : null
  }
}

const noSuchRun = () => refuse('not_found', 'The run does not exist')

/** Identifies a run's timeline, however the path spelled the run. */
function eventsWalk(environmentId: string, run: RunRow): Walk {
  return [environmentId, 'events', run.id]
}
