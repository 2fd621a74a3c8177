import type { RunFilter, RunPage } from '../../runs/runs.ts'
import type { ScoreFilter } from '@tacho/contract/runs/score-filter.ts'
import type { Part, Sql } from '../engine/sql.ts'
import { runWalk, type RunWalk } from './run-walk.ts'

/** A subquery that gives one value is looked up for each run, whatever the statistics say. */
const OF_PAGE = (selected: string, name = ':scoreName') =>
  `(SELECT ${selected} FROM run_scores s WHERE s.environment_id = :env AND s.name = ${name} AND s.run = page.id)`

export function scoreConditions(
  { dialect }: Pick<Sql, 'dialect'>,
  { score, unscored, share }: Pick<RunFilter, 'score' | 'unscored' | 'share'>,
): Part[] {
  const parts: Part[] = []
  if (score !== undefined) parts.push(ofScore(score))
  if (unscored !== undefined) parts.push({ text: `${OF_PAGE('1', ':unscored')} IS NULL`, params: { unscored } })
  if (share !== undefined && share < 100) {
    // The last digits of an id are random.
    const digits = dialect === 'sqlite' ? 'substr(id, -4)' : 'right(CAST(id AS TEXT), 4) COLLATE "C"'
    const below = Math.ceil((share / 100) * 0x10000)
    parts.push({ text: `${digits} < :below`, params: { below: below.toString(16).padStart(4, '0') } })
  }
  return parts
}

function ofScore({ name, compare, value }: ScoreFilter): Part {
  const params = { scoreName: name }
  if (compare === null || value === null) return { text: `${OF_PAGE('1')} IS NOT NULL`, params }
  if (typeof value === 'number')
    return { text: `${OF_PAGE('s.number')} ${compare} :value`, params: { ...params, value } }
  if (typeof value === 'string') return { text: `${OF_PAGE('s.category')} = :value`, params: { ...params, value } }
  return { text: `${OF_PAGE("CASE WHEN s.kind = 'BOOLEAN' THEN s.number END")} ${value ? '>=' : '<'} 0.5`, params }
}

export function scoreWalk(
  sql: Pick<Sql, 'dialect'>,
  environmentId: string,
  { name, order, looked }: { name: string; order: NonNullable<RunFilter['scoreOrder']>; looked: number },
  page: RunPage,
): RunWalk {
  const ranks = {
    text: `SELECT run AS id, number AS rank FROM run_scores
      WHERE environment_id = :env AND name = :scoreName AND number IS NOT NULL`,
    params: { env: environmentId, scoreName: name },
  }
  return runWalk(sql, environmentId, { ranks, direction: scoreDirection(order), most: looked }, page)
}

export const scoreDirection = (order: RunFilter['scoreOrder']) => (order === 'lowest' ? 'ASC' : 'DESC')
