/** Usage over time, by agent, model or prompt version. Each page sums up only its own steps. */
import type { Page } from '../page.ts'
import type { LatencyRow, UsagePointPage, UsagePointRow, UsageStore, UsageWindow } from '../usage.ts'
import type { UncostedSum } from '../uncosted.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import { read, type Acts } from './act.ts'
import { latencyRow, percentilesBy, type Call } from './latency-hours.ts'
import type { Sql, SqlValue } from './sql.ts'
import { sum, SUMS } from './sums.ts'
import { readUncostedSums } from './uncosted-sums.ts'
import { BEFORE_ALL } from './usage.ts'

export const usagePointsActs = {
  readUsagePoints: read(readUsagePoints),
} satisfies Acts<UsageStore>

type Point = Omit<UsagePointRow, 'name' | 'uncosted' | 'llm' | 'tool'>

const COUNTED = ['events', 'runs', 'completed', 'failed', 'cancelled'].map((name) => sum(name, name)).join(', ')
const KEYS = { agent: 'agent_id', model: 'model_key', promptVersion: 'prompt_version_id' } as const
const LATENCIES = { agent: 'latency_hours', model: 'latency_hours', promptVersion: 'version_latencies' } as const
/** Sorts before every key. */
const FIRST = { agent: BEFORE_ALL, model: '', promptVersion: BEFORE_ALL } as const

async function readUsagePoints(
  sql: Sql,
  { environmentId, workspaceId }: { environmentId: string; workspaceId: string },
  window: UsageWindow,
  page: UsagePointPage,
): Promise<Page<UsagePointRow>> {
  const points = await readPoints(sql, environmentId, window, page)
  const { by, stepMs, from } = window
  const names = new Map<string, string | null>()
  for (const { key } of points.rows) {
    if (!names.has(key))
      names.set(key, await nameOf(sql, by, by === 'promptVersion' ? workspaceId : environmentId, key))
  }
  const [first, last] = [points.rows[0], points.rows.at(-1)]
  const steps = first && last && { ...window, from: from + first.step * stepMs, to: from + (last.step + 1) * stepMs }
  const latencies = steps ? await readLatencies(sql, environmentId, window, steps) : new Map<string, LatencyRow>()
  const uncosted = steps ? await readUncosted(sql, environmentId, window, steps) : new Map<string, UncostedSum[]>()
  const rows = points.rows.map((point): UsagePointRow => {
    const latency = (call: Call) => latencies.get(`${point.step} ${point.key} ${call}`) ?? null
    return {
      ...point,
      name: names.get(point.key) ?? null,
      uncosted: uncosted.get(`${point.step} ${point.key}`) ?? [],
      llm: latency('LLM_CALL'),
      tool: latency('TOOL_CALL'),
    }
  })
  return { rows, more: points.more }
}

function readPoints(
  sql: Sql,
  environmentId: string,
  { by, from, to, stepMs }: UsageWindow,
  { limit, after }: UsagePointPage,
): Promise<Page<Point>> {
  const { step, key } = after ?? { step: -1, key: FIRST[by] }
  const start = from + Math.max(step, 0) * stepMs
  const source =
    by === 'promptVersion'
      ? versionRows(environmentId, start, to)
      : {
          text: `SELECT *, ${KEYS[by]} AS key, hour AS at FROM usage_hours WHERE environment_id = ? AND hour >= ? AND hour < ?`,
          params: [environmentId, start, to],
        }
  const text = `SELECT step, key, ${COUNTED}, ${SUMS}
    FROM (SELECT *, CAST((at - ?) / ? AS BIGINT) AS step FROM (${source.text}) named) page
    WHERE (step, key) > (?, ?) GROUP BY step, key HAVING SUM(events) > 0 OR SUM(runs) > 0 ORDER BY step, key`
  return sql.page(text, [from, stepMs, ...source.params, step, key], limit)
}

/** The newest runs of the window, each with its outcome as a count. */
function versionRows(environmentId: string, from: number, to: number): { text: string; params: SqlValue[] } {
  const newest = `SELECT * FROM version_runs WHERE environment_id = ? AND first_at >= ? AND first_at < ?
    ORDER BY first_at DESC LIMIT ?`
  const ended = (status: string) => `CASE WHEN r.status = '${status}' THEN 1 ELSE 0 END AS ${status.toLowerCase()}`
  const text = `SELECT named.prompt_version_id AS key, named.first_at AS at, named.events, 1 AS runs, ${ended('COMPLETED')},
      ${ended('FAILED')}, ${ended('CANCELLED')}, named.prompt_tokens, named.completion_tokens,
      named.total_tokens, named.cost_nanos
    FROM (${newest}) named JOIN runs r ON r.environment_id = ? AND r.id = named.run`
  return { text, params: [environmentId, from, to, LIMITS.usagePromptRuns, environmentId] }
}

async function nameOf(sql: Sql, by: UsageWindow['by'], tenantId: string, key: string): Promise<string | null> {
  if (by === 'model') {
    if (key === '') return ''
    const text = 'SELECT model AS name FROM models WHERE environment_id = ? AND model_key = ?'
    return (await sql.get<{ name: string }>(text, [tenantId, key]))?.name ?? null
  }
  if (by === 'agent') {
    const text = 'SELECT name FROM agents WHERE environment_id = ? AND id = ?'
    return (await sql.get<{ name: string }>(text, [tenantId, key]))?.name ?? null
  }
  const text = `SELECT p.name, v.number FROM prompt_versions v JOIN prompts p ON p.id = v.prompt_id
    WHERE v.id = ? AND p.workspace_id = ?`
  const version = await sql.get<{ name: string; number: number }>(text, [key, tenantId])
  return version && `${version.name} version ${version.number}`
}

/** By step and key. `from` and `to` are those of some steps of the window. */
async function readUncosted(
  sql: Sql,
  environmentId: string,
  { by, from: start, stepMs }: UsageWindow,
  { from, to }: Pick<UsageWindow, 'from' | 'to'>,
): Promise<Map<string, UncostedSum[]>> {
  const group = by === 'promptVersion' ? 'promptVersion' : 'agent'
  const key = by === 'model' ? 'model_key' : 'key'
  const sums = await readUncostedSums(sql, environmentId, { group, key, from, to, start, stepMs })
  return Map.groupBy(sums, ({ step, key: of }) => `${step} ${of}`)
}

/** By step, key and kind of call. `from` and `to` are those of some steps of the window. */
async function readLatencies(
  sql: Sql,
  environmentId: string,
  { by, from: start, stepMs }: UsageWindow,
  { from, to }: Pick<UsageWindow, 'from' | 'to'>,
): Promise<Map<string, LatencyRow>> {
  const text = percentilesBy(
    'step, key, call',
    `SELECT *, ${KEYS[by]} AS key, CAST((hour - ?) / ? AS BIGINT) AS step FROM ${LATENCIES[by]}
      WHERE environment_id = ? AND hour >= ? AND hour < ?`,
  )
  const params = [start, stepMs, environmentId, from, to]
  const rows = await sql.all<LatencyRow & { step: number; key: string; call: Call }>(text, params)
  return new Map(rows.map((row) => [`${row.step} ${row.key} ${row.call}`, latencyRow(row)]))
}
