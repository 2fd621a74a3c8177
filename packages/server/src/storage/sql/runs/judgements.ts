/** What judges see of each other's scores, and how far two of them agree. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { HiddenScoreRow, Judge, JudgedRow } from '../../runs/scores.ts'
import { lookup, read, type Sql } from '../engine/sql.ts'
import { allIn } from '../engine/rows.ts'

export const judgementsActs = { ...lookup({ readHiddenScores }), ...read({ readJudged }) }

/** Judgements of operators and tokens on what the judge has not judged. Scores of clients are no judgements. */
async function readHiddenScores(sql: Sql, environmentId: string, runs: readonly string[], { kind, id }: Judge) {
  if (runs.length === 0) return []
  const text = `SELECT run, name, event_id AS "eventId", CAST(COUNT(*) AS BIGINT) AS count FROM scores
    WHERE environment_id = :env AND run IN (:runs) AND author_kind <> 'client' GROUP BY run, name, event_id
    HAVING MAX(CASE WHEN author_kind = :kind AND author_id = :id THEN 1 ELSE 0 END) = 0`
  return allIn<HiddenScoreRow>(sql, text, { env: environmentId, runs, kind, id })
}

/** Scores of one name that the window's runs have, of runs with at least two; the latest first. */
async function readJudged(
  sql: Sql,
  environmentId: string,
  { name, from, to }: { name: string; from: number; to: number },
): Promise<JudgedRow[]> {
  const runs = `SELECT run FROM run_scores WHERE environment_id = :env AND scored_at >= :from AND scored_at < :to
    AND name = :name AND scores > 1 ORDER BY scored_at DESC LIMIT :most`
  const text = `SELECT r.run_id AS "runId", s.run, s.event_id AS "eventId", s.author_kind AS "authorKind",
      s.author_id AS "authorId", s.author_name AS "authorName", s.kind, s.number, s.category
    FROM (${runs}) given JOIN scores s ON s.environment_id = :env AND s.run = given.run AND s.name = :name
      JOIN runs r ON r.environment_id = :env AND r.id = s.run
    WHERE s.scored_at >= :from AND s.scored_at < :to ORDER BY s.scored_at DESC, s.id LIMIT :most`
  return sql.all<JudgedRow>(text, { env: environmentId, name, from, to, most: LIMITS.summedScores })
}
