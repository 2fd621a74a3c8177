import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { ROUTES } from '@tacho/contract/web/routes.ts'
import type { FastifyInstance } from 'fastify'
import type { Deps } from '../web/deps.ts'
import { eventPageJson, runDetailJson, toRun } from '../../domain/runs/run.ts'
import type { EventPage, Timeline } from '../../storage/record/events.ts'
import type { RunRow } from '../../storage/runs/runs.ts'
import type { Storage } from '../../storage/storage.ts'
import { tenantOf } from '../tenants/api-key.ts'
import { foundOr, refuse } from '../web/reply-error.ts'
import { RawJson, serveRoute } from '../web/serve-route.ts'
import { listPage, createPaging } from '../web/paging.ts'

export const NO_RUN = refuse('not_found', 'The run does not exist')

type EventPosition = NonNullable<EventPage['after']>

export function runsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors } = deps

  serveRoute(app, ROUTES.listRuns, deps, async ({ query, request }) => {
    const { environmentId } = tenantOf(request)
    const filter = { agentId: query.agentId, status: query.status, onlyOutcomesEnd: true }
    return listPage(
      createPaging(cursors, [environmentId, 'runs', filter], query),
      (page) => storage.listRuns(environmentId, filter, page),
      toRun,
      ({ startedAt, id }: RunRow) => ({ startedAt, id }),
    )
  })

  serveRoute(app, ROUTES.readRun, deps, async ({ params, request }) => {
    const { environmentId } = tenantOf(request)
    const timeline = await readTimeline(environmentId, params.runId, LIMITS.runDetailEvents)
    if (!timeline) return NO_RUN
    return new RawJson(runDetailJson(timeline.run, timeline.rows, nextCursor(environmentId, timeline)))
  })

  serveRoute(app, ROUTES.listRunEvents, deps, async ({ params, query, request }) => {
    const { environmentId } = tenantOf(request)
    const { cursor, limit = LIMITS.eventsPageDefault } = query
    const timeline =
      cursor === undefined
        ? await readTimeline(environmentId, params.runId, limit)
        : await continueTimeline(environmentId, params.runId, limit, cursor)
    if (!timeline) return NO_RUN
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
  ): Promise<Timeline> {
    const run = await runOf(storage, environmentId, runId)
    const after = createPaging(cursors, eventsOfRun(environmentId, run), { cursor }).after<EventPosition>()
    const page = { limit, pageBytes: LIMITS.pageBytes, after }
    return { run, ...(await storage.listEvents(environmentId, run.id, page)) }
  }

  function nextCursor(environmentId: string, { run, rows, more }: Timeline): string | null {
    const last = more ? rows.at(-1) : undefined
    return last ? cursors.write(eventsOfRun(environmentId, run), { time: last.time, seq: last.seq }) : null
  }
}

export async function runOf(storage: Pick<Storage, 'findRun'>, environmentId: string, runId: string): Promise<RunRow> {
  return foundOr(await storage.findRun(environmentId, runId), NO_RUN)
}

/** Binds cursors to the run's id, so that they are the same for both spellings of the path. */
function eventsOfRun(environmentId: string, run: RunRow): readonly unknown[] {
  return [environmentId, 'events', run.id]
}
