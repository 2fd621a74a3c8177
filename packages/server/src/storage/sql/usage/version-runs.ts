/**
 * What the events of one run that name a prompt version add up to: one row for each run and version. The run's own row says
 * how it ended, so nothing is counted twice and nothing must be corrected when a run ends later.
 */
import type { NewEvent, Problem, PromptUse } from '../../events.ts'
import type { VersionResultRow } from '../../prompts.ts'
import { read } from '../act.ts'
import { insertJsonRows, type InsertedTable } from '../rows/json-rows.ts'
import type { Sql } from '../sql.ts'
import { scoresOfVersion } from '../scores.ts'
import { latenciesOfVersion } from './version-latencies.ts'
import { readUncostedRuns } from './uncosted-sums.ts'
import { adding, addUsage, noUsage, sum, SUM_COLUMNS, SUM_TYPES, sumValues, type UsageSums } from './sums.ts'

export const versionRunsActs = {
  readVersionResults: read(readVersionResults),
}

export interface VersionChange extends UsageSums, Record<(typeof COUNTS)[number], number> {
  versionId: string
  /** Internal id. Newer runs have larger ones. */
  run: string
  firstAt: number
}

const COUNTS = ['events', 'errors', 'blocked', 'approvals'] as const
const PROBLEM_COUNTS = { error: 'errors', blocked: 'blocked', approval: 'approvals' } as const satisfies Record<
  Problem,
  (typeof COUNTS)[number]
>

export function countForVersion(
  versions: Map<string, VersionChange>,
  run: string,
  { time, usage }: NewEvent,
  { versionId, problem }: PromptUse,
): void {
  const key = `${versionId} ${run}`
  let change = versions.get(key)
  if (change === undefined) {
    const counts = { events: 0, errors: 0, blocked: 0, approvals: 0 }
    versions.set(key, (change = { versionId, run, firstAt: time, ...counts, ...noUsage() }))
  }
  change.events++
  if (problem !== null) change[PROBLEM_COUNTS[problem]]++
  if (usage !== null) addUsage(change, usage)
}

const VERSION_RUNS: InsertedTable = {
  name: 'version_runs AS v',
  columns: {
    prompt_version_id: 'uuid',
    run: 'uuid',
    first_at: 'bigint',
    ...Object.fromEntries(COUNTS.map((count) => [count, 'bigint'] as const)),
    ...SUM_TYPES,
  },
  conflict: `ON CONFLICT (environment_id, prompt_version_id, run)
    DO UPDATE SET ${adding('v', [...COUNTS, ...Object.keys(SUM_TYPES)])}`,
}

/** The transaction holds the rows of the runs, so no other one writes these. */
export function addVersionRuns(
  sql: Sql,
  environmentId: string,
  versions: ReadonlyMap<string, VersionChange>,
): Promise<unknown> {
  const rows = [...versions.values()].map((change) => {
    const { versionId, run, firstAt } = change
    return [versionId, run, firstAt, ...COUNTS.map((count) => change[count]), ...sumValues(change)]
  })
  return insertJsonRows(sql, VERSION_RUNS, environmentId, rows)
}

/** The place of a share of `n` values in their order, from 1. */
const place = (percent: number) => `(ended * ${percent} + 99) / 100`
const lengthAt = (percent: number, name: string) =>
  `MAX(CASE WHEN place = ${place(percent)} THEN length END) AS "${name}"`
const count = (condition: string, name: string) => `SUM(CASE WHEN ${condition} THEN 1 ELSE 0 END) AS "${name}"`

const COUNTED = `SELECT CAST(COUNT(*) AS BIGINT) AS runs,
    ${['completed', 'failed', 'cancelled'].map((name) => count(`status = '${name.toUpperCase()}'`, name)).join(', ')},
    ${COUNTS.map((name) => sum(name, name)).join(', ')},
    ${SUM_COLUMNS.map(([column, name]) => sum(column, name)).join(', ')},
    MIN(first_at) AS "firstAt", MAX(first_at) AS "lastAt",
    ${lengthAt(50, 'lengthP50')}, ${lengthAt(95, 'lengthP95')}`

const ONE_STEP = { start: 0, stepMs: Infinity }

/**
 * What the newest `runs` runs of each version did, in the order of the versions; null: no run used it.
 */
async function readVersionResults(
  sql: Sql,
  environmentId: string,
  versionIds: readonly string[],
  runs: number,
): Promise<(VersionResultRow | null)[]> {
  const newest = `SELECT * FROM version_runs WHERE environment_id = ? AND prompt_version_id = ?
    ORDER BY run DESC LIMIT ?`
  const joined = `FROM (${newest}) named JOIN runs r ON r.environment_id = ? AND r.id = named.run`
  const measured = `SELECT named.*, r.status, r.ended_at - r.started_at AS length, COUNT(r.ended_at) OVER () AS ended,
      ROW_NUMBER() OVER (PARTITION BY r.ended_at IS NULL ORDER BY r.ended_at - r.started_at) AS place
    ${joined}`
  const text = `${COUNTED} FROM (${measured}) page`
  const calls = `SELECT named.prompt_version_id AS key, r.started_at AS at, r.uncosted ${joined}`
  const results: (VersionResultRow | null)[] = []
  for (const versionId of versionIds) {
    const params = [environmentId, versionId, runs, environmentId]
    const row = await sql.get<Omit<VersionResultRow, 'llm' | 'tool' | 'uncosted' | 'scores'>>(text, params)
    if (row === null || row.runs === 0) {
      results.push(null)
      continue
    }
    const latencies = await latenciesOfVersion(sql, environmentId, versionId, row.firstAt)
    const uncosted = await readUncostedRuns(
      sql,
      { text: calls, params },
      ONE_STEP,
      new Set([versionId]),
      'promptVersion',
    )
    results.push({
      ...row,
      scores: await scoresOfVersion(sql, environmentId, versionId, runs),
      uncosted: [...uncosted.values()].flat(),
      llm: latencies.get('LLM_CALL') ?? null,
      tool: latencies.get('TOOL_CALL') ?? null,
    })
  }
  return results
}
