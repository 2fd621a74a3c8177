/**
 * Without further filters, an index has the ended runs in this order. If few runs match the filters, those are read and
 * sorted. Otherwise the runs of the index are checked one by one: so many match that they soon fill a page.
 */
import type { RunPage, RunRanking } from '../../runs/runs.ts'
import type { Part, Sql } from '../engine/sql.ts'
import { runWalk, type RunWalk } from './run-walk.ts'

const COLUMNS: Record<RunRanking['by'], string> = {
  cost: 'ranked_cost',
  length: 'ranked_length',
  tokens: 'ranked_tokens',
  failures: 'ranked_failures',
}

export function rankedWalk(
  sql: Pick<Sql, 'dialect'>,
  environmentId: string,
  { by, runsLookedAt }: RunRanking,
  few: Part | null | 'all',
  page: RunPage,
): RunWalk {
  const column = COLUMNS[by]
  const select = `SELECT id, ${column} AS rank FROM`
  // A literal, for the partial indexes.
  const ranks =
    few === null || few === 'all'
      ? { text: `${select} runs WHERE environment_id = :env AND ${column} IS NOT NULL`, params: { env: environmentId } }
      : { text: `${select} (${few.text}) few WHERE ${column} IS NOT NULL`, params: few.params }
  const most = few === 'all' ? page.limit + 1 : runsLookedAt
  return runWalk(sql, environmentId, { ranks, direction: 'DESC', most, isWhole: few !== null }, page)
}
