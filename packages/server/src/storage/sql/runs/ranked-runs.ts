/** Lists runs ordered by a number and then by id, instead of by start. */
import type { ScoreFilter } from '@tacho/contract/runs/score-filter.ts'
import type { RunPage, RunPlace, RunRanking, RunCriteria } from '../../runs/runs.ts'
import type { SqlFragment, Sql } from '../engine/sql.ts'

/** `alias`: the table alias of the runs, with a dot. */
export type RunOrder = (alias: string) => string

export interface RankedRuns {
  runs: SqlFragment
  /** The place of the last run that may be examined; null: all runs are examined. */
  last: SqlFragment | null
  order: RunOrder
}

interface RunRanks {
  /** Selects `rank` and `id` of an environment's runs. It ends with its WHERE, so that conditions can follow. */
  ranks: SqlFragment
  direction: 'ASC' | 'DESC'
  most: number
  isWhole?: boolean
}

/** Joins the run of each row of `from`. PostgreSQL finds each by the order of the index, as in OF_UUID. */
export function runsOf(
  { dialect }: Pick<Sql, 'dialect'>,
  from: string,
  name: string,
  key: string,
  columns = '',
): string {
  const joined =
    dialect === 'sqlite'
      ? `CROSS JOIN runs ON runs.environment_id = :env AND runs.${key} = ${name}.${key}`
      : `, LATERAL (SELECT * FROM runs WHERE environment_id = :env
          AND ${key} >= ${name}.${key} AND ${key} <= ${name}.${key} ORDER BY ${key} LIMIT 1) runs`
  return `(SELECT runs.*${columns} FROM (${from}) ${name} ${joined}) runs`
}

function rankedRuns(
  sql: Pick<Sql, 'dialect'>,
  environmentId: string,
  { ranks, direction, most, isWhole = false }: RunRanks,
  { after }: RunPage,
): RankedRuns {
  const beyond = after === null ? '' : `AND (rank, id) ${direction === 'ASC' ? '>' : '<'} (:afterRank, :afterId)`
  const by = `ORDER BY rank ${direction}, id ${direction}`
  // PostgreSQL and SQLite push conditions, order and limit into the plain subquery.
  const ranked = `SELECT id, rank FROM (${ranks.text}) ranks WHERE rank IS NOT NULL ${beyond} ${by} LIMIT :ranked`
  const place = after && { afterRank: after.rank ?? 0, afterId: after.id }
  const params = { ...ranks.params, ...place, ranked: most }
  const runs = runsOf(sql, ranked, 'ranked', 'id', ', ranked.rank')
  const last = `SELECT rank, id, 0 AS "startedAt" FROM (${ranked}) ranked ${by} LIMIT 1 OFFSET :past`
  return {
    runs: { text: runs, params: { ...params, env: environmentId } },
    last: isWhole ? null : { text: last, params: { ...params, past: most - 1 } },
    order: (alias) => `ORDER BY ${alias}rank ${direction}, ${alias}id ${direction}`,
  }
}

export function byRank(direction: 'ASC' | 'DESC') {
  const sign = direction === 'ASC' ? 1 : -1
  return (one: RunPlace, other: RunPlace): number => {
    const [a, b] = [one.rank ?? 0, other.rank ?? 0]
    if (a !== b) return sign * (a < b ? -1 : 1)
    return one.id === other.id ? 0 : sign * (one.id < other.id ? -1 : 1)
  }
}

/**
 * Without further filters, an index has the ended runs in this order. If few runs match the filters, those are read and
 * sorted. Otherwise the runs of the index are checked one by one: so many match that they soon fill a page.
 */

const COLUMNS: Record<RunRanking['by'], string> = {
  cost: 'ranked_cost',
  length: 'ranked_length',
  tokens: 'ranked_tokens',
  failures: 'ranked_failures',
}

export function endedByNumber(
  sql: Pick<Sql, 'dialect'>,
  environmentId: string,
  { by, runsLookedAt }: RunRanking,
  fewRuns: SqlFragment | null | 'all',
  page: RunPage,
): RankedRuns {
  const column = COLUMNS[by]
  const select = `SELECT id, ${column} AS rank FROM`
  // A literal, because only a literal lets the planner use the partial indexes.
  const ranks =
    fewRuns === null || fewRuns === 'all'
      ? { text: `${select} runs WHERE environment_id = :env AND ${column} IS NOT NULL`, params: { env: environmentId } }
      : { text: `${select} (${fewRuns.text}) few WHERE ${column} IS NOT NULL`, params: fewRuns.params }
  const most = fewRuns === 'all' ? page.limit + 1 : runsLookedAt
  return rankedRuns(sql, environmentId, { ranks, direction: 'DESC', most, isWhole: fewRuns !== null }, page)
}

/** A subquery with a single value is executed for each run, whatever the statistics are. */
const OF_PAGE = (selected: string, name = ':scoreName') =>
  `(SELECT ${selected} FROM run_scores s WHERE s.environment_id = :env AND s.name = ${name} AND s.run = page.id)`

export function scoreConditions(
  { dialect }: Pick<Sql, 'dialect'>,
  { score, unscored, unjudged, share }: Pick<RunCriteria, 'score' | 'unscored' | 'unjudged' | 'share'>,
): SqlFragment[] {
  const parts: SqlFragment[] = []
  if (score !== undefined) parts.push(ofScore(score))
  if (unscored !== undefined) parts.push({ text: `${OF_PAGE('1', ':unscored')} IS NULL`, params: { unscored } })
  if (unjudged !== undefined) {
    const { name, by } = unjudged
    const ownScore = `SELECT 1 FROM scores s WHERE s.environment_id = :env AND s.run = page.id AND s.name = :unjudged
      AND s.author_kind = :judgeKind AND s.author_id = :judgeId LIMIT 1`
    parts.push({ text: `(${ownScore}) IS NULL`, params: { unjudged: name, judgeKind: by.kind, judgeId: by.id } })
  }
  if (share !== undefined && share < 100) {
    // The last digits of an id are random.
    const digits = dialect === 'sqlite' ? 'substr(id, -4)' : 'right(CAST(id AS TEXT), 4) COLLATE "C"'
    const below = Math.ceil((share / 100) * 0x10000)
    parts.push({ text: `${digits} < :below`, params: { below: below.toString(16).padStart(4, '0') } })
  }
  return parts
}

function ofScore({ name, compare, value }: ScoreFilter): SqlFragment {
  const params = { scoreName: name }
  if (compare === null || value === null) return { text: `${OF_PAGE('1')} IS NOT NULL`, params }
  if (typeof value === 'number')
    return { text: `${OF_PAGE('s.number')} ${compare} :value`, params: { ...params, value } }
  if (typeof value === 'string') return { text: `${OF_PAGE('s.category')} = :value`, params: { ...params, value } }
  return { text: `${OF_PAGE("CASE WHEN s.kind = 'BOOLEAN' THEN s.number END")} ${value ? '>=' : '<'} 0.5`, params }
}

export function runsByScore(
  sql: Pick<Sql, 'dialect'>,
  environmentId: string,
  { name, order, looked }: { name: string; order: NonNullable<RunCriteria['scoreOrder']>; looked: number },
  page: RunPage,
): RankedRuns {
  const ranks = {
    text: `SELECT run AS id, number AS rank FROM run_scores
      WHERE environment_id = :env AND name = :scoreName AND number IS NOT NULL`,
    params: { env: environmentId, scoreName: name },
  }
  return rankedRuns(sql, environmentId, { ranks, direction: scoreDirection(order), most: looked }, page)
}

export const scoreDirection = (order: RunCriteria['scoreOrder']) => (order === 'lowest' ? 'ASC' : 'DESC')
