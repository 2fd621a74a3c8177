import type { Page } from '../../page.ts'
import type { LatencyRow, UsageGroup, UsagePointPage, UsagePointRow, UsageSort, UsageWindow } from '../../usage.ts'
import type { UncostedSum } from '../../uncosted.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import { read } from '../act.ts'
import { latencyRow, percentilesBy, type Call } from './latencies.ts'
import type { Part, Sql } from '../sql.ts'
import { sum, SUMS } from './sums.ts'
import { readUncostedRuns, readUncostedSums } from './uncosted-sums.ts'
import { BEFORE_ALL } from './usage.ts'

export const usagePointsActs = read({ readUsagePoints })

type Point = Omit<UsagePointRow, 'name' | 'uncosted' | 'calls' | 'llm' | 'tool'> & Partial<Named>

interface Named {
  name: string
  errors: number
  blocked: number
  approvals: number
}

type Steps = Pick<UsageWindow, 'from' | 'to'>

const COUNTED = ['events', 'runs', 'completed', 'failed', 'cancelled'].map((name) => sum(name, name)).join(', ')
const TOOL_COUNTED = ['errors', 'blocked', 'approvals'].map((name) => sum(name, name)).join(', ')
const OTHER_COLUMNS: Record<UsageGroup, string> = {
  agent: '',
  model: '',
  promptVersion: '',
  tool: `${TOOL_COUNTED}, `,
  session: 'MIN(name) AS name, ',
}
const NO_RUNS = '0 AS runs, 0 AS completed, 0 AS failed, 0 AS cancelled'
const NO_USAGE = '0 AS prompt_tokens, 0 AS completion_tokens, 0 AS total_tokens, 0 AS cost_nanos'
const ofModels = (key: string) => `${key} AS key, 'LLM_CALL' AS call FROM latency_hours WHERE`
const ofTools = (key: string) => `${key} AS key, 'TOOL_CALL' AS call FROM tool_hours WHERE bucket >= 0 AND`
const LATENCIES: Record<UsageGroup, readonly string[]> = {
  agent: [ofModels('agent_id'), ofTools('agent_id')],
  model: [ofModels('model_key'), ofTools("''")],
  promptVersion: ['prompt_version_id AS key, call FROM version_latencies WHERE'],
  tool: [ofTools('tool_key')],
  session: [],
}
/** Sorts before every key. */
const FIRST: Record<UsageGroup, string> = {
  agent: BEFORE_ALL,
  model: '',
  promptVersion: BEFORE_ALL,
  tool: '',
  session: '',
}

async function readUsagePoints(
  sql: Sql,
  { environmentId, workspaceId }: { environmentId: string; workspaceId: string },
  window: UsageWindow,
  page: UsagePointPage,
): Promise<Page<UsagePointRow>> {
  const points = await readPoints(sql, environmentId, window, page)
  const { by, stepMs, from } = window
  const names = new Map<string, string | null>()
  for (const { key, name } of points.rows) {
    const tenantId = by === 'promptVersion' ? workspaceId : environmentId
    if (!names.has(key)) names.set(key, name ?? (await nameOf(sql, by, tenantId, key)))
  }
  const places = points.rows.map(({ step }) => step)
  const last = Math.min(from + (Math.max(...places) + 1) * stepMs, window.to)
  const steps = { from: from + Math.min(...places) * stepMs, to: last }
  const keys = new Set(names.keys())
  const isEmpty = places.length === 0
  const latencies = isEmpty ? new Map<string, LatencyRow>() : await readLatencies(sql, environmentId, window, steps)
  const uncosted = isEmpty
    ? new Map<string, UncostedSum[]>()
    : await readUncosted(sql, environmentId, window, steps, keys)
  const rows = points.rows.map(({ errors = 0, blocked = 0, approvals = 0, ...point }): UsagePointRow => {
    const latency = (call: Call) => latencies.get(`${point.step} ${point.key} ${call}`) ?? null
    return {
      ...point,
      name: names.get(point.key) ?? null,
      uncosted: uncosted.get(`${point.step} ${point.key}`) ?? [],
      calls: by === 'tool' ? { errors, blocked, approvals } : null,
      llm: latency('LLM_CALL'),
      tool: latency('TOOL_CALL'),
    }
  })
  return { rows, more: points.more }
}

function readPoints(sql: Sql, environmentId: string, window: UsageWindow, { limit, sort, after }: UsagePointPage) {
  const { by, from, to, stepMs } = window
  const place = sort === undefined ? after : null
  const start = from + Math.max(place?.step ?? 0, 0) * stepMs
  const source = sourceOf(by, environmentId, start, to)
  const sums = `SELECT step, key, ${OTHER_COLUMNS[by]}${COUNTED}, ${SUMS}
    FROM (SELECT *, CAST((at - :start) / :stepMs AS BIGINT) AS step FROM (${source.text}) named) page
    WHERE (step, key) > (:afterStep, :afterKey) GROUP BY step, key`
  const afterPlace = { afterStep: place?.step ?? -1, afterKey: place?.key ?? FIRST[by] }
  const params = { start: from, stepMs, ...source.params, ...afterPlace }
  const value = sort === undefined ? '0' : valueOf(by, sort)
  const isUsed = by === 'tool' ? 'events > 0 OR blocked > 0 OR approvals > 0' : 'events > 0 OR runs > 0'
  const used = `SELECT *, ${value} AS value FROM (${sums}) named WHERE ${isUsed}`
  if (sort === undefined) return sql.page<Point>(`${used} ORDER BY step, key`, params, limit)
  const greatest = { value: Number.MAX_SAFE_INTEGER, totalTokens: Number.MAX_SAFE_INTEGER, key: '', ...after }
  const text = `SELECT * FROM (${used}) page
    WHERE value < :most OR (value = :most AND ("totalTokens" < :tokens OR ("totalTokens" = :tokens AND key > :lastKey)))
    ORDER BY value DESC, "totalTokens" DESC, key`
  const { value: most, totalTokens: tokens, key } = greatest
  return sql.page<Point>(text, { ...params, most, tokens, lastKey: key === '' ? FIRST[by] : key }, limit)
}

function valueOf(by: UsageGroup, sort: UsageSort): string {
  if (sort === 'failed' && by === 'tool') return 'errors'
  return { cost: '"costNanos"', tokens: '"totalTokens"', events: 'events', runs: 'runs', failed: 'failed' }[sort]
}

function sourceOf(by: UsageGroup, environmentId: string, from: number, to: number): Part {
  if (by === 'promptVersion') return versionRows(environmentId, from, to)
  if (by === 'session') return sessionRuns(environmentId, from, to)
  const rows = {
    agent: '*, agent_id AS key, hour AS at FROM usage_hours',
    model: '*, model_key AS key, hour AS at FROM usage_hours',
    tool: `*, tool_key AS key, hour AS at, calls AS events, ${NO_RUNS}, ${NO_USAGE} FROM tool_hours`,
  }[by]
  const text = `SELECT ${rows} WHERE environment_id = :env AND hour >= :from AND hour < :to`
  return { text, params: { env: environmentId, from, to } }
}

const ended = (status: string) => `CASE WHEN r.status = '${status}' THEN 1 ELSE 0 END AS ${status.toLowerCase()}`
const ENDED = ['COMPLETED', 'FAILED', 'CANCELLED'].map(ended).join(', ')

function versionRows(environmentId: string, from: number, to: number): Part {
  const newest = `SELECT * FROM version_runs WHERE environment_id = :env AND first_at >= :from AND first_at < :to
    ORDER BY first_at DESC LIMIT ${LIMITS.usagePromptRuns}`
  const text = `SELECT named.prompt_version_id AS key, named.first_at AS at, named.events, 1 AS runs, ${ENDED},
      named.prompt_tokens, named.completion_tokens, named.total_tokens, named.cost_nanos, r.uncosted
    FROM (${newest}) named JOIN runs r ON r.environment_id = :env AND r.id = named.run`
  return { text, params: { env: environmentId, from, to } }
}

function sessionRuns(environmentId: string, from: number, to: number): Part {
  const text = `SELECT r.session_key AS key, r.session_id AS name, r.started_at AS at, r.event_count AS events, 1 AS runs,
      ${ENDED}, r.prompt_tokens, r.completion_tokens, r.total_tokens, r.cost_nanos, r.uncosted
    FROM runs r WHERE r.environment_id = :env AND r.session_key IS NOT NULL AND r.started_at >= :from AND r.started_at < :to
    ORDER BY r.started_at DESC LIMIT ${LIMITS.usageSessionRuns}`
  return { text, params: { env: environmentId, from, to } }
}

async function nameOf(sql: Sql, by: UsageGroup, tenantId: string, key: string): Promise<string | null> {
  if (key === '') return ''
  const text = {
    agent: 'SELECT COALESCE(display_name, name) AS name FROM agents WHERE environment_id = :tenantId AND id = :key',
    model: 'SELECT model AS name FROM models WHERE environment_id = :tenantId AND model_key = :key',
    tool: 'SELECT tool AS name FROM tools WHERE environment_id = :tenantId AND tool_key = :key',
    session: 'SELECT session_id AS name FROM runs WHERE environment_id = :tenantId AND session_key = :key LIMIT 1',
    promptVersion: `SELECT p.name || ' version ' || v.number AS name FROM prompt_versions v
      JOIN prompts p ON p.workspace_id = v.workspace_id AND p.id = v.prompt_id
      WHERE v.workspace_id = :tenantId AND v.id = :key`,
  }[by]
  return (await sql.get<{ name: string }>(text, { tenantId, key }))?.name ?? null
}

async function readUncosted(
  sql: Sql,
  environmentId: string,
  { by, from: start, stepMs }: UsageWindow,
  { from, to }: Steps,
  keys: ReadonlySet<string>,
): Promise<Map<string, UncostedSum[]>> {
  if (by === 'tool') return new Map()
  const window = { from, to, start, stepMs }
  if (by === 'session') return readUncostedRuns(sql, sessionRuns(environmentId, from, to), window, keys, by)
  if (by === 'promptVersion') return readUncostedRuns(sql, versionRows(environmentId, from, to), window, keys, by)
  const key = by === 'model' ? 'model_key' : 'agent_id'
  const sums = await readUncostedSums(sql, environmentId, { key, ...window })
  return Map.groupBy(sums, ({ step, key: of }) => `${step} ${of}`)
}

async function readLatencies(
  sql: Sql,
  environmentId: string,
  { by, from: start, stepMs }: UsageWindow,
  { from, to }: Steps,
): Promise<Map<string, LatencyRow>> {
  const sources = LATENCIES[by]
  if (sources.length === 0) return new Map()
  const step = 'CAST((hour - :start) / :stepMs AS BIGINT) AS step'
  const texts = sources.map(
    (of) => `SELECT bucket, calls, ${step}, ${of} environment_id = :env AND hour >= :from AND hour < :to`,
  )
  const text = percentilesBy('step, key, call', texts.join(' UNION ALL '))
  const params = { start, stepMs, env: environmentId, from, to }
  const rows = await sql.all<LatencyRow & { step: number; key: string; call: Call }>(text, params)
  return new Map(rows.map((row) => [`${row.step} ${row.key} ${row.call}`, latencyRow(row)]))
}
