import type { NewEvent } from '../../record/events.ts'
import { OF_RUN_ID } from '../runs/runs.ts'
import type { Sql } from '../engine/sql.ts'

/** Users give scores later, in other programs. So a score should neither make an agent nor open a run of it. */
export async function findJoining(sql: Sql, environmentId: string, events: readonly NewEvent[]) {
  const scores = events.filter(({ eventType }) => eventType === 'SCORE')
  if (scores.length === 0) return new Set<NewEvent>()
  const opened = new Set(events.flatMap(({ eventType, runId }) => (eventType === 'SCORE' ? [] : runId)))
  const text = `SELECT run_id AS "runId" FROM runs WHERE environment_id = :env AND ${OF_RUN_ID}`
  const sought = new Set(scores.map(({ runId }) => runId)).difference(opened)
  const found = Array.from(sought, (runId) => sql.get<{ runId: string }>(text, { env: environmentId, run: runId }))
  for (const run of await Promise.all(found)) if (run !== null) opened.add(run.runId)
  return new Set(scores.filter(({ runId }) => opened.has(runId)))
}
