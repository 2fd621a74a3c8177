import { LIMITS } from '@tacho/contract/limits.ts'
import { toRunProblem } from '../../domain/problem.ts'
import type { ProblemEvent } from '../../storage/events.ts'
import { listPage } from '../paging.ts'
import { runOf } from '../runs.ts'
import { createTurnsOfWorkspaces } from '../shared-turns.ts'
import type { OperatorDeps } from './serve.ts'

export function problemsRoutes({ serve, storage, cursors }: OperatorDeps): void {
  // Each problem of an idle run may lie in a compressed block of its own.
  const takeTurn = createTurnsOfWorkspaces(LIMITS.problemsAtOnce, 'pages of problems')

  serve('listRunProblems', async ({ params, query, reply, environment }) => {
    const run = await runOf(storage, environment.id, params.runId)
    return listPage(cursors, query, {
      of: [environment.id, 'problems', run.id],
      read: (page) =>
        takeTurn(reply, () =>
          storage.listProblems(environment.id, run.id, { pageBytes: LIMITS.problemsPageBytes, ...page }),
        ),
      placeOf: ({ time, seq }: ProblemEvent) => ({ time, seq }),
      toItem: toRunProblem,
      defaultLimit: LIMITS.problemsPageDefault,
    })
  })
}
