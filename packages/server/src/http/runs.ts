import { LIMITS } from '@tacho/contract/limits.ts'
import { ROUTES } from '@tacho/contract/routes.ts'
import type { FastifyInstance } from 'fastify'
import type { Deps } from './deps.ts'
import { eventPageJson, runDetailJson, toRun } from '../domain/run.ts'
import { isStorableText } from '../domain/text.ts'
import type { EventPage, RunPage, RunRow, Storage, StoredEvent } from '../storage/storage.ts'
import { tenantOf } from './api-key.ts'
import { pageOf, startOf, type Walk } from './paging.ts'
import { isRefusal, refuse } from './reply-error.ts'
import { serveRoute } from './serve-route.ts'

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
    const rows = await storage.listRuns(environmentId, { agentId, status }, { limit: limit + 1, ...start })
    return pageOf(rows, limit, toRun, ({ startedAt, id }) => cursors.write(walk, { startedAt, id }))
  })

  serveRoute(app, ROUTES.readRun, deps, async ({ params, request }) => {
    const { environmentId } = tenantOf(request)
    const run = await findRun(storage, environmentId, params.runId)
    if (!run) return refuse('not_found', 'There is no such run')
    const { rows, nextCursor } = await readEvents(environmentId, run, LIMITS.runDetailEvents, null)
    return { json: runDetailJson(run, rows, nextCursor) }
  })

  serveRoute(app, ROUTES.listRunEvents, deps, async ({ params, query, request }) => {
    const { environmentId } = tenantOf(request)
    const run = await findRun(storage, environmentId, params.runId)
    if (!run) return refuse('not_found', 'There is no such run')
    const start = startOf<EventPosition>(cursors, eventsWalk(environmentId, run), query.cursor)
    if (isRefusal(start)) return start
    const { limit = LIMITS.eventsPageDefault } = query
    const { rows, nextCursor } = await readEvents(environmentId, run, limit, start.after)
    return { json: eventPageJson(run, rows, nextCursor) }
  })

  async function readEvents(
    environmentId: string,
    run: RunRow,
    limit: number,
    after: EventPosition | null,
  ): Promise<{ rows: StoredEvent[]; nextCursor: string | null }> {
    const { rows, more } = await storage.listEvents(environmentId, run.id, {
      limit,
      pageBytes: LIMITS.pageBytes,
      after,
    })
    const last = more ? rows.at(-1) : undefined
    const position: EventPosition | undefined = last && { time: last.time, seq: last.seq }
    return { rows, nextCursor: position ? cursors.write(eventsWalk(environmentId, run), position) : null }
  }
}

/** By external id or internal UUID; a text that no store keeps is nobody's id. */
export async function findRun(storage: Storage, environmentId: string, id: string): Promise<RunRow | null> {
  return isStorableText(id) ? storage.findRun(environmentId, id) : null
}

/** The walk of a run's timeline, however its path was spelled. */
function eventsWalk(environmentId: string, run: RunRow): Walk {
  return [environmentId, 'events', run.id]
}
