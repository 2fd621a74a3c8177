import type { VersionResultRow, VersionRunGroup } from '../../policies/policies.ts'
import { read, type Sql } from '../engine/sql.ts'
import { latenciesOfVersion, saturating, sumsOf, USAGE_COLUMNS } from './rollup.ts'
import { scoresOfVersion } from './scores.ts'
import { DAY_MS } from '../../engine/times.ts'
import { hasUnknown, readUncosted, type UncostedSum } from '../../runs/usage.ts'
import { addCalls } from './uncosted-sums.ts'

export const versionResultsActs = read({ readVersionResults })

/** Rank of a percentile among the ended runs in their order, from 1. */
const place = (percent: number) => `(ended * ${percent} + 99) / 100`
const lengthAt = (percent: number, name: string) =>
  `MAX(CASE WHEN place = ${place(percent)} THEN length END) AS "${name}"`
const count = (condition: string, name: string) => `SUM(CASE WHEN ${condition} THEN 1 ELSE 0 END) AS "${name}"`

const COUNTED = `SELECT CAST(COUNT(*) AS BIGINT) AS runs,
    ${['completed', 'failed', 'cancelled'].map((name) => count(`status = '${name.toUpperCase()}'`, name)).join(', ')},
    ${sumsOf(['events', 'errors', 'blocked', 'approvals', ...USAGE_COLUMNS])},
    MIN(first_at) AS "firstAt", MAX(first_at) AS "lastAt",
    ${lengthAt(50, 'lengthP50')}, ${lengthAt(95, 'lengthP95')}`

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
  const spent = `SELECT named.total_tokens AS "totalTokens", named.cost_nanos AS "costNanos", r.started_at AS at, r.uncosted ${joined}`
  const results: (VersionResultRow | null)[] = []
  for (const versionId of versionIds) {
    const params = { env: environmentId, versionId, runs }
    const row = await sql.get<Omit<VersionResultRow, 'llm' | 'tool' | 'uncosted' | 'groups' | 'scores'>>(text, params)
    if (row === null || row.runs === 0) {
      results.push(null)
      continue
    }
    const latencies = await latenciesOfVersion(sql, environmentId, versionId, row.firstAt)
    const groups = groupsOf(await sql.all<SpentRow>(spent, params), versionId)
    const uncosted = new Map<string, UncostedSum>()
    for (const sum of groups.flatMap((group) => group.uncosted)) addCalls(uncosted, sum)
    results.push({
      ...row,
      scores: await scoresOfVersion(sql, environmentId, versionId, runs),
      uncosted: [...uncosted.values()],
      groups,
      llm: latencies.get('LLM_CALL') ?? null,
      tool: latencies.get('TOOL_CALL') ?? null,
    })
  }
  return results
}

type SpentRow = Pick<VersionRunGroup, 'totalTokens' | 'costNanos'> & { at: number; uncosted: string | null }

/** Runs whose figures are known or unknown together, because they called the same models. */
function groupsOf(rows: readonly SpentRow[], versionId: string): VersionRunGroup[] {
  const groups = new Map<string, Omit<VersionRunGroup, 'uncosted'> & { sums: Map<string, UncostedSum> }>()
  for (const { totalTokens, costNanos, at, uncosted } of rows) {
    const calls = readUncosted(uncosted).filter((call) => call.versionId === versionId)
    const models = calls.map(({ model, context }) => (hasUnknown(context) ? '\0' : model))
    const key = JSON.stringify([
      totalTokens > 0,
      costNanos > 0,
      ...new Set(models.toSorted((one, other) => (one < other ? -1 : 1))),
    ])
    const group = groups.get(key) ?? { runs: 0, totalTokens: 0, costNanos: 0, sums: new Map<string, UncostedSum>() }
    groups.set(key, group)
    group.runs++
    group.totalTokens = saturating(group.totalTokens, totalTokens)
    group.costNanos = saturating(group.costNanos, costNanos)
    for (const { versionId: _, ...call } of calls) addCalls(group.sums, { ...call, at: at - (at % DAY_MS) })
  }
  return Array.from(groups.values(), ({ sums, ...group }) => ({ ...group, uncosted: [...sums.values()] }))
}
