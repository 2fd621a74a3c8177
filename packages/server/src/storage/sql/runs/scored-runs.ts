/** Runs by their scores: conditions on a page of runs, and runs in the order of a score. */
import type { RunFilter, RunPage, RunPlace } from '../../runs.ts'
import type { ScoreFilter } from '@tacho/contract/score-filter.ts'
import type { Sql, SqlValue } from '../sql.ts'

interface Part {
  text: string
  params: SqlValue[]
}

/** Of the run `page`. A subquery that gives one value is looked up for each run, whatever the statistics say. */
const OF_PAGE = (selected: string) =>
  `(SELECT ${selected} FROM run_scores s WHERE s.environment_id = ? AND s.name = ? AND s.run = page.id)`

/** What the filter demands of the scores of a run, and of its id. */
export function scoreConditions(
  { dialect }: Pick<Sql, 'dialect'>,
  environmentId: string,
  { score, unscored, share }: Pick<RunFilter, 'score' | 'unscored' | 'share'>,
): Part[] {
  const parts: Part[] = []
  if (score !== undefined) parts.push(ofScore(environmentId, score))
  if (unscored !== undefined) parts.push({ text: `${OF_PAGE('1')} IS NULL`, params: [environmentId, unscored] })
  if (share !== undefined && share < 100) {
    // The last digits of an id are random.
    const digits = dialect === 'sqlite' ? 'substr(id, -4)' : 'right(CAST(id AS TEXT), 4) COLLATE "C"'
    const below = Math.ceil((share / 100) * 0x10000)
    parts.push({ text: `${digits} < ?`, params: [below.toString(16).padStart(4, '0')] })
  }
  return parts
}

function ofScore(environmentId: string, { name, compare, value }: ScoreFilter): Part {
  const params = [environmentId, name]
  if (compare === null || value === null) return { text: `${OF_PAGE('1')} IS NOT NULL`, params }
  if (typeof value === 'number') return { text: `${OF_PAGE('s.number')} ${compare} ?`, params: [...params, value] }
  if (typeof value === 'string') return { text: `${OF_PAGE('s.category')} = ?`, params: [...params, value] }
  return { text: `${OF_PAGE("CASE WHEN s.kind = 'BOOLEAN' THEN s.number END")} ${value ? '>=' : '<'} 0.5`, params }
}

/** A walk over the runs with a number of one name. `runs` has the column `score`. */
export interface ScoreWalk {
  runs: Part
  /** The place of the last run, if there are as many as may be looked at. */
  last: Part
  /** As of a statement over `runs`. `alias`: that of the runs, with a dot. */
  order: (alias: string) => string
}

export function scoreWalk(
  { dialect }: Pick<Sql, 'dialect'>,
  environmentId: string,
  { name, order, looked }: { name: string; order: NonNullable<RunFilter['scoreOrder']>; looked: number },
  { after }: RunPage,
): ScoreWalk {
  const direction = order === 'lowest' ? 'ASC' : 'DESC'
  const beyond = after === null ? '' : `AND (number, run) ${order === 'lowest' ? '>' : '<'} (?, ?)`
  const by = `ORDER BY number ${direction}, run ${direction}`
  const walked = `SELECT run, number FROM run_scores WHERE environment_id = ? AND name = ? AND number IS NOT NULL ${beyond}
    ${by} LIMIT ?`
  const params = [environmentId, name, ...(after === null ? [] : [after.score ?? 0, after.id]), looked]
  // PostgreSQL finds each run by the order of the index, as in OF_UUID.
  const runs =
    dialect === 'sqlite'
      ? `(SELECT runs.*, walked.number AS score FROM (${walked}) walked
          CROSS JOIN runs ON runs.environment_id = ? AND runs.id = walked.run) runs`
      : `(SELECT runs.*, walked.number AS score FROM (${walked}) walked, LATERAL (SELECT * FROM runs WHERE environment_id = ?
          AND id >= walked.run AND id <= walked.run ORDER BY id LIMIT 1) runs) runs`
  const last = `SELECT number AS score, run AS id, 0 AS "startedAt" FROM (${walked}) walked ${by} LIMIT 1 OFFSET ?`
  return {
    runs: { text: runs, params: [...params, environmentId] },
    last: { text: last, params: [...params, looked - 1] },
    order: (alias) => `ORDER BY ${alias}score ${direction}, ${alias}id ${direction}`,
  }
}

export function byScore(order: RunFilter['scoreOrder']) {
  const sign = order === 'lowest' ? 1 : -1
  return (one: RunPlace, other: RunPlace): number => {
    const [a, b] = [one.score ?? 0, other.score ?? 0]
    if (a !== b) return sign * (a < b ? -1 : 1)
    return one.id === other.id ? 0 : sign * (one.id < other.id ? -1 : 1)
  }
}
