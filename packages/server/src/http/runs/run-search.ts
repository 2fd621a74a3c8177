import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { toEventRow } from '../../domain/runs/run.ts'
import { isStorableText } from '../../domain/web/text.ts'
import type { TimelinePlace } from '../../storage/record/events.ts'
import { createTurnsOfWorkspaces } from '../web/shared-turns.ts'
import type { OperatorDeps } from '../web/serve.ts'

/** Between two pieces, other requests get their turn. */
const PIECE = { limit: 250, pageBytes: 524_288 }

export function runSearchRoutes({ serve, storage }: OperatorDeps): void {
  const takeTurn = createTurnsOfWorkspaces(LIMITS.searchesAtOnce, 'searches of runs')

  serve('searchRun', async ({ query: { q }, reply, environment, run, walk: { limit, ...walk } }) => {
    const after = walk.after<TimelinePlace>()
    if (!isStorableText(q)) return { items: [], examined: 0, nextCursor: null }
    const bounds = { events: LIMITS.eventsLookedAt, bytes: LIMITS.searchedPayloadBytes, piece: PIECE }
    const { rows, examined, lookedTo } = await takeTurn(reply, () =>
      storage.searchRun(environment.id, run.id, { text: q, limit, after, bounds }),
    )
    const items = rows.map(({ event, snippet }) => ({ event: toEventRow(run, event), snippet }))
    return { items, examined, nextCursor: lookedTo === null ? null : walk.cursorAt(lookedTo) }
  })
}
