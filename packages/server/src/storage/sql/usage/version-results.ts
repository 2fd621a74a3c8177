import type { VersionResultRow } from '../../prompts.ts'
import { read } from '../act.ts'
import { latenciesOfVersion } from './latencies.ts'
import type { Sql } from '../sql.ts'
import { scoresOfVersion } from '../scores.ts'
import { sumsOf, USAGE_COLUMNS } from './sums.ts'
import { readUncostedRuns } from './uncosted-sums.ts'

export const versionResultsActs = read({ readVersionResults })

/** The place of a share of `n` values in their order, from 1. */
const place = (percent: number) => `(ended * ${percent} + 99) / 100`
const lengthAt = (percent: number, name: string) =>
  `MAX(CASE WHEN place = ${place(percent)} THEN length END) AS "${name}"`
const count = (condition: string, name: string) => `SUM(CASE WHEN ${condition} THEN 1 ELSE 0 END) AS "${name}"`

const COUNTED = `SELECT CAST(COUNT(*) AS BIGINT) AS runs,
    ${['completed', 'failed', 'cancelled'].map((name) => count(`status = '${name.toUpperCase()}'`, name)).join(', ')},
    ${sumsOf(['events', 'errors', 'blocked', 'approvals', ...USAGE_COLUMNS])},
    MIN(first_at) AS "firstAt", MAX(first_at) AS "lastAt",
    ${lengthAt(50, 'lengthP50')}, ${lengthAt(95, 'lengthP95')}`

const ONE_STEP = { start: 0, stepMs: Infinity }

/** In the order of the versions; null: no run used it. */
async function readVersionResults(sql: Sql, environmentId: string, versionIds: readonly string[], runs: number) {
  // Newer runs have larger ids.
  const newest = `SELECT * FROM version_runs WHERE environment_id = :env AND prompt_version_id = :versionId
    ORDER BY run DESC LIMIT :runs`
  const joined = `FROM (${newest}) named JOIN runs r ON r.environment_id = :env AND r.id = named.run`
  const measured = `SELECT named.*, r.status, r.ended_at - r.started_at AS length, COUNT(r.ended_at) OVER () AS ended,
      ROW_NUMBER() OVER (PARTITION BY r.ended_at IS NULL ORDER BY r.ended_at - r.started_at) AS place
    ${joined}`
  const text = `${COUNTED} FROM (${measured}) page`
  const calls = `SELECT named.prompt_version_id AS key, r.started_at AS at, r.uncosted ${joined}`
  const results: (VersionResultRow | null)[] = []
  for (const versionId of versionIds) {
    const params = { env: environmentId, versionId, runs }
    const row = await sql.get<Omit<VersionResultRow, 'llm' | 'tool' | 'uncosted' | 'scores'>>(text, params)
    if (row === null || row.runs === 0) {
      results.push(null)
      continue
    }
    const latencies = await latenciesOfVersion(sql, environmentId, versionId, row.firstAt)
    const ofVersion = { text: calls, params }
    const uncosted = await readUncostedRuns(sql, ofVersion, ONE_STEP, new Set([versionId]), 'promptVersion')
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
