import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { toRunProblem } from '../../domain/runs/problem.ts'
import type { ProblemEvent } from '../../storage/record/events.ts'
import { listPage } from '../web/paging.ts'
import { createTurnsOfWorkspaces } from '../web/shared-turns.ts'
import type { OperatorDeps } from '../web/serve.ts'

export function problemsRoutes({ serve, storage }: OperatorDeps): void {
  // Each problem of an idle run may lie in a compressed block of its own.
  const takeTurn = createTurnsOfWorkspaces(LIMITS.problemsAtOnce, 'pages of problems')

  serve('listRunProblems', ({ reply, environment, run, walk }) =>
    listPage(
      walk,
      (page) => {
        const bounded = { pageBytes: LIMITS.problemsPageBytes, ...page }
        return takeTurn(reply, () => storage.listProblems(environment.id, run.id, bounded))
      },
      toRunProblem,
      ({ time, seq }: ProblemEvent) => ({ time, seq }),
    ),
  )
}
