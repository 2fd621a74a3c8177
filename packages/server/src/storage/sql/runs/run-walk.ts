/** Walks over runs by a number, then by id, instead of by their start. */
import type { RunPage, RunPlace } from '../../runs/runs.ts'
import type { Part, Sql } from '../engine/sql.ts'

/** `alias`: that of the runs, with a dot. */
export type RunOrder = (alias: string) => string

export interface RunWalk {
  runs: Part
  /** The place of the last run that may be examined; null: all runs are examined. */
  last: Part | null
  order: RunOrder
}

interface Walked {
  /** The columns `rank` and `id` of an environment's runs, with conditions at the end. */
  ranks: Part
  direction: 'ASC' | 'DESC'
  most: number
  isWhole?: boolean
}

/** The run of each row of `from`. PostgreSQL finds each by the order of the index, as in OF_UUID. */
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

export function runWalk(
  sql: Pick<Sql, 'dialect'>,
  environmentId: string,
  { ranks, direction, most, isWhole = false }: Walked,
  { after }: RunPage,
): RunWalk {
  const beyond = after === null ? '' : `AND (rank, id) ${direction === 'ASC' ? '>' : '<'} (:afterRank, :afterId)`
  const by = `ORDER BY rank ${direction}, id ${direction}`
  // PostgreSQL and SQLite push conditions, order and limit into the plain subquery.
  const walked = `SELECT id, rank FROM (${ranks.text}) ranks WHERE rank IS NOT NULL ${beyond} ${by} LIMIT :walked`
  const place = after && { afterRank: after.rank ?? 0, afterId: after.id }
  const params = { ...ranks.params, ...place, walked: most }
  const runs = runsOf(sql, walked, 'walked', 'id', ', walked.rank')
  const last = `SELECT rank, id, 0 AS "startedAt" FROM (${walked}) walked ${by} LIMIT 1 OFFSET :past`
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
