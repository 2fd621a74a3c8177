/**
 * Queues runs with new failures or loops for jobs/issues/find-failures.ts, and with new decisions for
 * jobs/policies/derive-decisions.ts: one row for a run and transaction.
 */
import { LRUCache } from 'lru-cache'
import { payloadIncludes, type NewEvent } from '../../record/events.ts'
import { isError } from '../../record/failure.ts'
import { failureSubject, type TimeSpan } from '../../issues/issues.ts'
import type { Sql } from '../engine/sql.ts'
import { enqueueWork, RESTARTS } from '../engine/work.ts'
import type { RunState } from './run-state.ts'
import { OF_RUN_ID } from '../runs/runs.ts'

const FAILURES_OF_A_RUN = 100
/** Waits for clients, because they report a failure a moment before or after its event. */
const SETTLE_MS = 2_000

export type FailedRuns = Map<RunState, FailedSpan>

interface FailedSpan extends TimeSpan {
  failures: number
}

/** Decisions that name the policies that matched. */
export function noteDecision(decided: FailedRuns, run: RunState, { eventType, payload, time }: NewEvent): void {
  if (eventType !== 'POLICY_DECISION' || !payloadIncludes(payload, '"policyVersions"')) return
  const { from, to, failures } = decided.get(run) ?? { from: time, to: time, failures: 0 }
  decided.set(run, { from: Math.min(from, time), to: Math.max(to, time), failures: failures + 1 })
}

/** Call this after the event changed its run. Later outcomes of an ended run count like its errors. */
export function noteFailedRun(failed: FailedRuns, run: RunState, seq: number, event: NewEvent): void {
  const { outcome, time } = event
  const isEnd = outcome === 'FAILED' && run.closingSeq === seq
  const known: FailedSpan = failed.get(run) ?? { from: time, to: time, failures: 0 }
  // The error count of a run that this batch opened already includes all of the batch's errors.
  const errors = run.openedEvents > 0 ? known.failures + 1 : run.errorCount
  const isLoop = run.hasNewLoop && event.callKey !== null
  if (!isEnd && !isLoop && !(isError(event) && errors <= FAILURES_OF_A_RUN)) return
  const [from, to] = [Math.min(known.from, time), Math.max(known.to, time)]
  const ends = known.ends ?? isEnd
  failed.set(run, { from, to, ...(ends && { ends }), failures: known.failures + 1 })
}

export function queueFailedRuns(
  sql: Sql,
  environmentId: string,
  { failed, decided }: { failed: FailedRuns; decided: FailedRuns },
  now: number,
): Promise<void> {
  const queued = (kind: 'find_failures' | 'derive_decisions', runs: FailedRuns) =>
    Array.from(runs, ([run, span]) => {
      return { kind, environmentId, subjectId: failureSubject(run.id, span), dueAt: now + SETTLE_MS }
    })
  const work = [...queued('find_failures', failed), ...queued('derive_decisions', decided)]
  // If the same span is queued, restart it: its worker has not read these events.
  return enqueueWork(sql, work, RESTARTS)
}

/** If everything fails, this many failures a second, and this many at once, are examined. Others count in no issue. */
const FAILURES = { perSecond: 50, atOnce: 5_000 }
/** The same limits for decisions. Decisions beyond them are not derived again. */
export const DECISIONS = { perSecond: 20, atOnce: 2_000 }
const ENVIRONMENTS_KEPT = 10_000

export function failureBudgets({ perSecond, atOnce } = FAILURES) {
  const budgets = new LRUCache<string, { left: number; at: number }>({ max: ENVIRONMENTS_KEPT })
  return {
    within(environmentId: string, failed: FailedRuns, now: number): FailedRuns {
      const { left, at } = budgets.get(environmentId) ?? { left: atOnce, at: now }
      let grown = Math.min(atOnce, left + (Math.max(0, now - at) / 1_000) * perSecond)
      const within: FailedRuns = new Map()
      for (const [run, span] of failed) {
        if (grown < 1) break
        // The last run may take more than is left: the budget then goes below zero.
        grown -= span.failures
        within.set(run, span)
      }
      budgets.set(environmentId, { left: grown, at: now })
      return within
    },
  }
}

/** Users give scores later, from other programs. So a score should neither create an agent nor open a run. */
export async function findJoining(sql: Sql, environmentId: string, events: readonly NewEvent[]) {
  const scores = events.filter(({ eventType }) => eventType === 'SCORE')
  if (scores.length === 0) return new Set<NewEvent>()
  const opened = new Set(events.flatMap(({ eventType, runId }) => (eventType === 'SCORE' ? [] : runId)))
  const text = `SELECT run_id AS "runId" FROM runs WHERE environment_id = :env AND ${OF_RUN_ID}`
  const sought = new Set(scores.map(({ runId }) => runId)).difference(opened)
  const failedRuns = Array.from(sought, (runId) => sql.get<{ runId: string }>(text, { env: environmentId, run: runId }))
  for (const run of await Promise.all(failedRuns)) if (run !== null) opened.add(run.runId)
  return new Set(scores.filter(({ runId }) => opened.has(runId)))
}
