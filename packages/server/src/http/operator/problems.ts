import { LIMITS } from '@tacho/contract/limits.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import { toRunProblem } from '../../domain/problem.ts'
import type { ProblemEvent } from '../../storage/events.ts'
import type { Deps } from '../deps.ts'
import { holderOf } from '../holder.ts'
import { listPage } from '../paging.ts'
import { refuse } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { createTurnsOfWorkspaces } from '../shared-turns.ts'
import { environmentOf } from './access.ts'

const TOO_MANY = refuse('overloaded', 'Too many pages of problems of this workspace are waiting')

export function problemsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors } = deps
  // Each problem of an idle run may lie in a compressed block of its own.
  const takeTurn = createTurnsOfWorkspaces(LIMITS.problemsAtOnce, TOO_MANY)

  serveRoute(app, OPERATOR_ROUTES.listRunProblems, deps, async ({ params, query, request, reply }) => {
    const environment = environmentOf(request)
    const run = await storage.findRun(environment.id, params.runId)
    if (!run) return refuse('not_found', 'The run does not exist')
    return listPage(cursors, query, {
      of: [environment.id, 'problems', run.id],
      read: (page) =>
        takeTurn({
          holder: holderOf(request),
          isOver: () => reply.raw.destroyed,
          run: () => storage.listProblems(environment.id, run.id, { pageBytes: LIMITS.problemsPageBytes, ...page }),
        }),
      placeOf: ({ time, seq }: ProblemEvent) => ({ time, seq }),
      toItem: toRunProblem,
      defaultLimit: LIMITS.problemsPageDefault,
    })
  })
}
