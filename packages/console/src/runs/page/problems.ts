/** Problems of a run, and calls that were held, with their steps. The server finds them in runs of any length. */
import { queryOptions, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api } from '../../web/api.ts'
import type { OperatorRun, RunFailure, RunProblem } from '@tacho/contract/runs/operator-run.ts'
import type { ApprovalStatus } from '@tacho/contract/approvals/approval.ts'
import type { OperatorApproval } from '@tacho/contract/approvals/operator-approval.ts'
import type { ToldProblem } from '@tacho/contract/runs/problem.ts'
import { STATES, type StateName } from '../../web/text/state-styles.ts'
import type { Step } from '../queries.ts'

/** Presentation of a problem. */
export interface Told {
  is: StateName
  text: string
  /** Word in the row of its step. */
  word: string
  /** The first line of the error, or the policy and its reason; empty if the row already shows it. */
  why: string
}

/** Whether it is a failure. Otherwise it is only pending. */
export const isRed = ({ is }: Pick<Told, 'is'>): boolean => STATES[is][0] === 'red'

export interface Problem extends Told {
  eventId: string
  time: number
  /** Null until the step's row has arrived. */
  step: Step | null
}

/** Maximum number of pages of problems to read. Later ones are not marked. */
const PAGES_READ = 5
const NONE: readonly RunProblem[] = []

/** The run's problems, sorted by time, and the tools that never ended. */
export function useProblems(
  environmentId: string,
  run: OperatorRun | undefined,
  steps: readonly Step[],
  lost: ReadonlySet<string>,
): { problems: Problem[]; areRead: boolean } {
  const { data: runProblems = NONE, isPending } = useQuery({
    ...problemsQuery(environmentId, run),
    enabled: run !== undefined,
  })
  const decided = useDecided(environmentId, run?.runId ?? '', runProblems)
  const problems = useMemo(() => {
    const named = new Set([...runProblems.map(({ eventId }) => eventId), ...lost])
    const placed = new Map<string, Step>()
    for (const step of steps) if (named.has(step.eventId)) placed.set(step.eventId, step)
    const shownProblems = runProblems.map((problem): Problem => {
      const { eventId, eventType, timestamp } = problem
      const step = placed.get(eventId) ?? null
      const toldProblem = tellProblem(eventType, problem, decided?.get(problem.approvalId ?? ''))
      return { ...toldProblem, eventId, time: step?.time ?? Date.parse(timestamp), step }
    })
    const unended = [...lost].flatMap((eventId): Problem[] => {
      const step = placed.get(eventId)
      return step ? [{ ...neverEndedBy(step.label), eventId, time: step.time, step }] : []
    })
    if (unended.length === 0) return shownProblems
    return [...shownProblems, ...unended].sort((a, b) => a.time - b.time || (a.step?.index ?? 0) - (b.step?.index ?? 0))
  }, [runProblems, steps, lost, decided])
  return { problems, areRead: !isPending }
}

const DECIDED_READ = 200
const DECIDED_MS = 5_000

/** People's decisions in the run, by approval. Read only if a call needed one. */
function useDecided(environmentId: string, runId: string, runProblems: readonly RunProblem[]) {
  return useQuery({
    queryKey: ['approvals', environmentId, 'of run', runId],
    queryFn: async ({ signal }) => {
      const query = { runId, limit: DECIDED_READ }
      const { items } = await api.listApprovals({ params: { environmentId }, query }, { signal })
      return new Map(items.map((approval) => [approval.id, approval]))
    },
    enabled: runProblems.some(({ approvalId }) => approvalId !== null),
    refetchInterval: ({ state: { data } }) =>
      [...(data?.values() ?? [])].some(({ status }) => status === 'PENDING') ? DECIDED_MS : false,
  }).data
}

function problemsQuery(environmentId: string, run: OperatorRun | undefined) {
  const runId = run?.runId ?? ''
  return queryOptions({
    // Read again when events have arrived.
    queryKey: ['problems', environmentId, runId, run?.eventCount],
    queryFn: async ({ signal }): Promise<readonly RunProblem[]> => {
      const runProblems: RunProblem[] = []
      let cursor: string | undefined
      for (let page = 0; page < PAGES_READ; page++) {
        const query = cursor === undefined ? {} : { cursor }
        const { items, nextCursor } = await api.listRunProblems({ params: { environmentId, runId }, query }, { signal })
        runProblems.push(...items)
        if (nextCursor === null) break
        cursor = nextCursor
      }
      return runProblems
    },
    // Keep the problems of earlier steps on screen while those of new steps are read.
    placeholderData: (before, query) => (query?.queryKey[2] === runId ? before : undefined),
    staleTime: Infinity,
    gcTime: 60_000,
  })
}

const DECIDED: Record<ApprovalStatus, string> = {
  PENDING: 'waits for approval',
  APPROVED: 'approved',
  REJECTED: 'rejected',
  EXPIRED: 'expired undecided',
}

const neverEndedBy = (label: string): Told => ({
  is: 'FAILED',
  word: 'never ended',
  why: '',
  text: `${label} started, never ended`,
})

/** @param approval the approval that the call needed, if known. */
export function tellProblem(
  eventType: string,
  { kind, name, why, outcome }: ToldProblem,
  approval?: Pick<OperatorApproval, 'status' | 'decidedBy' | 'decisionReason'>,
): Told {
  if (kind === 'blocked') return { is: 'BLOCKED', word: 'blocked', why, text: `${name} blocked` }
  if (kind === 'approval') {
    const word = approval === undefined ? 'needed approval' : DECIDED[approval.status]
    const by = approval?.decidedBy ? ` by ${approval.decidedBy.name}` : ''
    const is = approval?.status ?? 'REQUIRE_APPROVAL'
    return { is, word: `${word}${by}`, why: approval?.decisionReason ?? why, text: `${name} ${word}` }
  }
  if (outcome === 'never_ran') return { is: 'NEVER_RAN', word: 'never ran', why, text: `${name} never ran` }
  if (eventType === 'ERROR') return { is: 'FAILED', word: 'error', why, text: name }
  return { is: 'FAILED', word: 'failed', why, text: eventType === 'SESSION_OUTCOME' ? 'run failed' : `${name} failed` }
}

/** The step where the failure began: an outcome repeats the error of a tool. Null if not known yet. */
export function failedAt(failure: RunFailure, problems: readonly Problem[]): { step: Step; times: number } | null {
  const { message, eventId } = failure
  const isSame = ({ why, text }: Problem) =>
    message !== null && (`: ${why}`.endsWith(`: ${message}`) || text === message)
  const same = problems.filter((one) => isSame(one) && one.step?.eventType !== 'SESSION_OUTCOME')
  const step = (same[0] ?? problems.find((one) => one.eventId === eventId))?.step
  return step ? { step, times: Math.max(1, same.filter(({ text }) => text === same[0]?.text).length) } : null
}

/** Issues in which this run occurred. */
export function useIssuesOfRun(environmentId: string, runId: string) {
  return useQuery({
    queryKey: ['issues of run', environmentId, runId],
    queryFn: () => api.listIssues({ params: { environmentId }, query: { runId, limit: 20 } }),
  })
}
