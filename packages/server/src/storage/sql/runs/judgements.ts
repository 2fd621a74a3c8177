/** What judges see of each other's scores, and how far two of them agree. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { HiddenScoreRow, Judge, JudgedRow, ScoreRow } from '../../runs/scores.ts'
import { lookup, read, selectList, type Sql } from '../engine/sql.ts'
import { rowsByKey } from '../engine/revision.ts'

type JudgementRow = Pick<ScoreRow, 'run' | 'name' | 'eventId' | 'authorKind' | 'authorId'>

export const judgementsActs = { ...lookup({ readHiddenScores }), ...read({ readJudged }) }

/** Judgements of operators and tokens on what the judge has not judged. Scores of clients are no judgements. */
async function readHiddenScores(sql: Sql, environmentId: string, runs: readonly string[], { kind, id }: Judge) {
  if (runs.length === 0) return []
  const columns = `r.run, ${selectList('name event_id author_kind author_id', 'r.')}`
  const by = { table: 'scores', key: 'run', columns, order: `run, id LIMIT ${LIMITS.scoresOfRun}` } as const
  const rows = await rowsByKey<JudgementRow>(sql, environmentId, runs, by)
  const judgements = rows.filter(({ authorKind }) => authorKind !== 'client')
  const units = Map.groupBy(judgements, ({ run, name, eventId }) => JSON.stringify([run, name, eventId]))
  return [...units.values()].flatMap((unit): HiddenScoreRow[] => {
    const [{ run, name, eventId }] = unit as [JudgementRow]
    const isJudged = unit.some(({ authorKind, authorId }) => authorKind === kind && authorId === id)
    return isJudged ? [] : [{ run, name, eventId, count: unit.length }]
  })
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
