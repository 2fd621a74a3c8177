import { LIMITS } from '@tacho/contract/limits.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import { completenessSums, placeOf, toSum, type SumPlace } from '../../domain/completeness-sums.ts'
import { nullableIsoTime } from '../../domain/run.ts'
import type { GapFilter, RunPlace } from '../../storage/runs.ts'
import type { Deps } from '../deps.ts'
import { pageOf, startOf } from '../paging.ts'
import { isRefusal } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { waitForTurn } from '../turns.ts'
import { environmentOf } from './access.ts'
import { windowOf } from './window.ts'

const RUNS_AT_ONCE = 100
/** Added in one turn of the event loop: a run may have many. */
const RECORDERS_IN_TURN = 250

export function completenessRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors } = deps

  serveRoute(app, OPERATOR_ROUTES.readCompleteness, deps, async ({ query, request }) => {
    const window = windowOf(query)
    if (isRefusal(window)) return window
    const { id } = environmentOf(request)
    const { by, limit = LIMITS.operatorPageDefault, cursor } = query
    const agentId = query.agentId?.toLowerCase()
    const walk = [id, 'completeness', by, agentId ?? '', window.from, window.to]
    const start = startOf<SumPlace>(cursors, walk, cursor)
    if (isRefusal(start)) return start
    const sums = completenessSums(by)
    const lookedTo = await eachRun(id, { agentId, ...window }, sums.add)
    const page = pageOf(sums.after(start.after), limit, toSum, (last) => cursors.write(walk, placeOf(last)))
    return { ...page, lookedTo: nullableIsoTime(lookedTo) }
  })

  /** Newest first. Returns the start of the last run that was added, if there may be more. */
  async function eachRun(
    environmentId: string,
    filter: GapFilter,
    add: ReturnType<typeof completenessSums>['add'],
  ): Promise<number | null> {
    let [recorders, inTurn] = [0, 0]
    let after: RunPlace | null = null
    for (;;) {
      const { rows, more } = await storage.listGaps(environmentId, filter, { limit: RUNS_AT_ONCE, after })
      for (const run of rows) {
        const added = add(run)
        recorders += added
        inTurn += added
        if (inTurn < RECORDERS_IN_TURN) continue
        inTurn = 0
        await waitForTurn()
      }
      const last = rows.at(-1)
      if (!more || last === undefined) return null
      if (recorders >= LIMITS.summedRecorders) return last.startedAt
      after = last
    }
  }
}
