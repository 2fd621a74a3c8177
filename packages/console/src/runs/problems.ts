/** What went wrong in a run, or was held back, and at which step. */
import { useQueries, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api } from '../api.ts'
import { isObject, textAt } from '@tacho/contract/read-payload.ts'
import { eventQuery, type Step, type WholeEvent } from './run-queries.ts'

export interface Problem {
  tone: 'red' | 'amber'
  text: string
  /** In the row of its step. */
  word: string
  step: Step
}

/** Payloads that are read to find failed tools and blocked calls. */
const PAYLOADS_READ = 150
const MAY_TELL = new Set(['TOOL_CALL', 'POLICY_DECISION'])

/** Errors of the whole run; failed tools and decisions among its first calls. */
export function useProblems(environmentId: string, runId: string, steps: readonly Step[]): Problem[] {
  const looked = useMemo(
    () => steps.filter(({ eventType }) => MAY_TELL.has(eventType)).slice(0, PAYLOADS_READ),
    [steps],
  )
  const found = useQueries({
    queries: looked.map(({ eventId }) => eventQuery(environmentId, runId, eventId)),
    combine: (results) => results.flatMap(({ data }) => data ?? []),
  })
  return useMemo(() => {
    const byId = new Map(found.map((whole) => [whole.event.eventId, whole]))
    return steps.flatMap((step) => problemAt(step, byId.get(step.eventId)) ?? [])
  }, [steps, found])
}

function problemAt(step: Step, whole: WholeEvent | undefined): Problem | null {
  const payload = whole?.event.payload
  if (step.eventType === 'ERROR') return { tone: 'red', text: step.label, word: 'error', step }
  if (!isObject(payload)) return null
  if (step.eventType === 'TOOL_CALL') {
    const failed = Object.hasOwn(payload, 'error') && payload['error'] !== null && payload['error'] !== false
    return failed ? { tone: 'red', text: `${step.label} failed`, word: 'failed', step } : null
  }
  const action = textAt(payload, 'action')
  const tool = textAt(payload, 'toolName') ?? step.label
  if (action === 'BLOCK') return { tone: 'red', text: `${tool} blocked`, word: 'blocked', step }
  if (action === 'REQUIRE_APPROVAL')
    return { tone: 'amber', text: `${tool} needed approval`, word: 'needed approval', step }
  return null
}

/** Issues in which this run occurred. */
export function useIssuesOfRun(environmentId: string, runId: string) {
  return useQuery({
    queryKey: ['issues of run', environmentId, runId],
    queryFn: () => api.listIssues({ params: { environmentId }, query: { runId, limit: 20 } }),
  })
}
