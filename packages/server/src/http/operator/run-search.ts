import { LIMITS } from '@tacho/contract/limits.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import { toEventRow } from '../../domain/run.ts'
import { isStorableText } from '../../domain/text.ts'
import type { TimelinePlace } from '../../storage/events.ts'
import type { Deps } from '../deps.ts'
import { holderOf } from '../holder.ts'
import { placeAt } from '../paging.ts'
import { refuse } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { createTurnsOfWorkspaces } from '../shared-turns.ts'
import { environmentOf } from './access.ts'

const TOO_MANY = refuse('overloaded', 'Too many searches of runs of this workspace are waiting')
/** Read at a time: between them, other requests get their turn. */
const PIECE = { limit: 250, pageBytes: 524_288 }

export function runSearchRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors } = deps
  const takeTurn = createTurnsOfWorkspaces(LIMITS.searchesAtOnce, TOO_MANY)

  serveRoute(app, OPERATOR_ROUTES.searchRun, deps, async ({ params, query, request, reply }) => {
    const { q, limit = LIMITS.searchPageDefault, cursor } = query
    const environment = environmentOf(request)
    const run = await storage.findRun(environment.id, params.runId)
    if (!run) return refuse('not_found', 'The run does not exist')
    const of = [environment.id, 'search of a run', run.id, q]
    const after = placeAt<TimelinePlace>(cursors, of, cursor)
    if (!isStorableText(q)) return { items: [], examined: 0, nextCursor: null }
    const bounds = { events: LIMITS.eventsLookedAt, bytes: LIMITS.searchedPayloadBytes, piece: PIECE }
    const { rows, examined, lookedTo } = await takeTurn({
      holder: holderOf(request),
      isOver: () => reply.raw.destroyed,
      run: () => storage.searchRun(environment.id, run.id, { text: q, limit, after, bounds }),
    })
    const items = rows.map(({ event, snippet }) => ({ event: toEventRow(run, event), snippet }))
    return { items, examined, nextCursor: lookedTo === null ? null : cursors.write(of, lookedTo) }
  })
}
