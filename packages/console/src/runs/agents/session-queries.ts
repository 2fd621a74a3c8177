/** What the page of a session reads: its runs, and the first steps of each. */
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { useQueries, useQuery } from '@tanstack/react-query'
import { api } from '../../web/api.ts'
import { withRows, type Step } from '../queries.ts'

const REFRESH_MS = 5_000
/** Newest runs of the session that are read. */
export const RUNS_READ = 50
/** Steps shown of each run. The page of the run shows all. */
const STEPS_READ = 200

export function useSessionRuns(environmentId: string, sessionId: string) {
  return useQuery({
    queryKey: ['runs', environmentId, 'of session', sessionId],
    queryFn: ({ signal }) =>
      api.listOperatorRuns({ params: { environmentId }, query: { sessionId, limit: RUNS_READ } }, { signal }),
    refetchInterval: REFRESH_MS,
  })
}

export interface RunSteps {
  run: OperatorRun
  /** Undefined: not read yet. */
  steps: readonly Step[] | undefined
}

/** In the order of the runs. Steps that have been read are read again when the run has more. */
export function useFirstSteps(environmentId: string, runs: readonly OperatorRun[]): RunSteps[] {
  return useQueries({
    queries: runs.map(({ runId, eventCount }) => ({
      queryKey: ['first steps', environmentId, runId, Math.min(eventCount, STEPS_READ)],
      queryFn: async ({ signal }: { signal: AbortSignal }) => {
        const query = { limit: STEPS_READ }
        const { items } = await api.listEventRows({ params: { environmentId, runId }, query }, { signal })
        return withRows([], items)
      },
      staleTime: Infinity,
    })),
    combine: (results) => runs.map((run, index) => ({ run, steps: results[index]?.data })),
  })
}
