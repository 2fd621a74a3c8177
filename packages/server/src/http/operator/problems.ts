import { LIMITS } from '@tacho/contract/limits.ts'
import { toRunProblem } from '../../domain/problem.ts'
import type { ProblemEvent } from '../../storage/events.ts'
import { listPage } from '../paging.ts'
import { createTurnsOfWorkspaces } from '../shared-turns.ts'
import type { OperatorDeps } from './serve.ts'

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
