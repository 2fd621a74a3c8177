import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Page } from '../../engine/page.ts'
import type {
  LatencyRow,
  UsageGroup,
  UsagePointPage,
  UsagePointRow,
  UsageSort,
  UsageWindow,
  UncostedSum,
  Waiting,
} from '../../runs/usage.ts'
import { NIL_UUID } from '../../engine/uuid.ts'
import { read, type Sql } from '../engine/sql.ts'
import { textKey, agentKey } from '../engine/keys.ts'
import { latencyRow, percentilesBy, type Call, MAX_SUM, sumsOf, USAGE_COLUMNS } from './rollup.ts'
import { readLabelPoints } from './usage-labels.ts'
import { readUncostedRuns, readUncostedSums, type UncostedSums } from './uncosted-sums.ts'
import { HOUR_MS, hourOf } from '../../engine/times.ts'
import { partParams, readPartHours, rowsInHours, type PartHours } from './part-hours.ts'
import type { UsageHourRow, UsagePage } from '../../runs/runs.ts'
import { allIn } from '../engine/rows.ts'

export const usagePointsActs = read({ readUsagePoints })

type Point = Omit<UsagePointRow, 'name' | 'uncosted' | 'calls' | 'llm' | 'tool' | 'waiting'> & Partial<Named>

interface Named {
  name: string
  errors: number
  blocked: number
  approvals: number
}

type Steps = Pick<UncostedSums, 'start' | 'stepMs' | 'from' | 'to'>

const COUNTED = sumsOf(['events', 'runs', 'completed', 'failed', 'cancelled', ...USAGE_COLUMNS])
const NO_RUNS = '0 AS runs, 0 AS completed, 0 AS failed, 0 AS cancelled'
const NO_USAGE = '0 AS prompt_tokens, 0 AS completion_tokens, 0 AS total_tokens, 0 AS cost_nanos'
const ofModels = (key: string) => ['latencies', `${key} AS key, 'LLM_CALL' AS call`] as const
const ofTools = (key: string) => ['tools', `${key} AS key, 'TOOL_CALL' AS call`] as const

const ended = (status: string) => `CASE WHEN r.status = '${status}' THEN 1 ELSE 0 END AS ${status.toLowerCase()}`
const ENDED = ['COMPLETED', 'FAILED', 'CANCELLED'].map(ended).join(', ')
const runsBy = (key: string, name: string, condition = `${key} IS NOT NULL`) =>
  `SELECT ${key} AS key, ${name} AS name, r.started_at AS at, r.event_count AS events, 1 AS runs,
      ${ENDED}, r.prompt_tokens, r.completion_tokens, r.total_tokens, r.cost_nanos, r.uncosted
    FROM runs r WHERE r.environment_id = :env AND ${condition} AND r.started_at >= :from AND r.started_at < :to
    ORDER BY r.started_at DESC LIMIT ${LIMITS.usageSessionRuns}`

interface Group {
  /** Selects `key`, `at` and the counts of `usage_hours` from `:from` to `:to`. With `rollup`, it ends before FROM. */
  rows: string
  rollup?: 'hours' | 'tools'
  columns?: string
  /** Sorts before every key. */
  first: string
  latencies: readonly (readonly [rollup: 'latencies' | 'tools' | 'versionLatencies', columns: string])[]
  /** Null: the rows contain the name. */
  name: string | null
}

/** Groups that SQL can sum up. usage-labels.ts sums up tags and metadata, which are lines of text in the rows of runs. */
type SqlGroup = Exclude<UsageGroup, 'tag' | 'metadata'>

const OF_USER = runsBy('r.user_key', 'r.user_id', 'r.user_key = :userKey')

const GROUPS: Record<SqlGroup, Group> = {
  agent: {
    rows: 'SELECT *, agent_id AS key, hour AS at',
    rollup: 'hours',
    first: NIL_UUID,
    latencies: [ofModels('agent_id'), ofTools('agent_id')],
    name: 'SELECT COALESCE(display_name, name) AS name FROM agents WHERE environment_id = :tenantId AND id = :key',
  },
  model: {
    rows: 'SELECT *, model_key AS key, hour AS at',
    rollup: 'hours',
    first: '',
    latencies: [ofModels('model_key'), ofTools("''")],
    name: 'SELECT model AS name FROM models WHERE environment_id = :tenantId AND model_key = :key',
  },
  tool: {
    rows: `SELECT *, tool_key AS key, hour AS at, calls AS events, ${NO_RUNS}, ${NO_USAGE}`,
    rollup: 'tools',
    columns: `${sumsOf(['errors', 'blocked', 'approvals'])}, `,
    first: '',
    latencies: [ofTools('tool_key')],
    name: 'SELECT tool AS name FROM tools WHERE environment_id = :tenantId AND tool_key = :key',
  },
  session: {
    rows: runsBy('r.session_key', 'r.session_id'),
    columns: 'MIN(name) AS name, ',
    first: '',
    latencies: [],
    name: null,
  },
  user: {
    rows: runsBy('r.user_key', 'r.user_id'),
    columns: 'MIN(name) AS name, ',
    first: '',
    latencies: [],
    name: null,
  },
  promptVersion: {
    rows: `SELECT named.prompt_version_id AS key, named.first_at AS at, named.events, 1 AS runs, ${ENDED},
        named.prompt_tokens, named.completion_tokens, named.total_tokens, named.cost_nanos, r.uncosted
      FROM (SELECT * FROM version_runs WHERE environment_id = :env AND first_at >= :from AND first_at < :to
        ORDER BY first_at DESC LIMIT ${LIMITS.usagePromptRuns}) named
      JOIN runs r ON r.environment_id = :env AND r.id = named.run`,
    first: NIL_UUID,
    latencies: [['versionLatencies', 'prompt_version_id AS key, call']],
    name: `SELECT p.name || ' version ' || v.number AS name FROM prompt_versions v
      JOIN prompts p ON p.workspace_id = v.workspace_id AND p.id = v.prompt_id
      WHERE v.workspace_id = :tenantId AND v.id = :key`,
  },
}

async function readUsagePoints(
  sql: Sql,
  { environmentId, workspaceId }: { environmentId: string; workspaceId: string },
  given: UsageWindow,
  page: UsagePointPage,
): Promise<Page<UsagePointRow>> {
  const { by, stepMs, from } = given
  if (by === 'tag' || by === 'metadata') return readLabelPoints(sql, environmentId, { ...given, by }, page)
  const part = await readPartHours(sql, environmentId, given)
  const window = { ...given, by, part }
  const points = await readPoints(sql, environmentId, window, page)
  if (points.rows.length === 0) return { rows: [], more: false }
  const names = new Map<string, string | null>()
  for (const { key, name } of points.rows) {
    const tenantId = by === 'promptVersion' ? workspaceId : environmentId
    if (!names.has(key)) names.set(key, name ?? (await nameOf(sql, by, tenantId, key)))
  }
  const places = points.rows.map(({ step }) => step)
  const last = Math.min(from + (Math.max(...places) + 1) * stepMs, window.to)
  const steps = { start: from, stepMs, from: from + Math.min(...places) * stepMs, to: last }
  const latencies = await readLatencies(sql, environmentId, window, steps)
  const waits = by === 'agent' && given.withWaits ? await readWaits(sql, environmentId, window) : null
  const uncosted = await uncostedOfPoints(sql, environmentId, window, steps, new Set(names.keys()))
  const rows = points.rows.map(({ errors = 0, blocked = 0, approvals = 0, ...point }): UsagePointRow => {
    const latency = (call: Call) => latencies.get(`${point.step} ${point.key} ${call}`) ?? null
    return {
      ...point,
      name: names.get(point.key) ?? null,
      uncosted: uncosted.get(`${point.step} ${point.key}`) ?? [],
      calls: by === 'tool' ? { errors, blocked, approvals } : null,
      llm: latency('LLM_CALL'),
      tool: latency('TOOL_CALL'),
      waiting: waits && waits(point.key),
    }
  })
  return { rows, more: points.more }
}

type SqlWindow = UsageWindow & { by: SqlGroup; part: PartHours }

/** The rows that a group sums up. Those of a single user are found by the index of users. */
function rowsOf(sql: Sql, { by, label, part }: SqlWindow): string {
  if (by === 'user' && label !== undefined) return OF_USER
  const { rows, rollup } = GROUPS[by]
  return rollup === undefined ? rows : `${rows} FROM ${rowsInHours(sql, rollup, part)}`
}
const userKeyOf = ({ by, label }: SqlWindow) => (by === 'user' && label !== undefined ? textKey(label) : undefined)

function readPoints(sql: Sql, environmentId: string, window: SqlWindow, { limit, sort, after }: UsagePointPage) {
  const { by, from, to, stepMs, part } = window
  const place = sort === undefined ? after : null
  const start = from + Math.max(place?.step ?? 0, 0) * stepMs
  const { columns = '', first, rollup } = GROUPS[by]
  const sums = `SELECT step, key, ${columns}${COUNTED}
    FROM (SELECT *, CAST((at - :start) / :stepMs AS BIGINT) AS step FROM (${rowsOf(sql, window)}) named) page
    WHERE (step, key) > (:afterStep, :afterKey) GROUP BY step, key`
  const afterPlace = { afterStep: place?.step ?? -1, afterKey: place?.key ?? first }
  const userKey = userKeyOf(window)
  const parts = rollup && partParams(sql, part, rollup)
  const params = { env: environmentId, start: from, stepMs, from: start, to, userKey, ...afterPlace, ...parts }
  const value = sort === undefined ? '0' : valueOf(by, sort)
  const isUsed = by === 'tool' ? 'events > 0 OR blocked > 0 OR approvals > 0' : 'events > 0 OR runs > 0'
  const used = `SELECT *, ${value} AS value FROM (${sums}) named WHERE ${isUsed}`
  if (sort === undefined) return sql.page<Point>(`${used} ORDER BY step, key`, params, limit)
  const text = `SELECT * FROM (${used}) page
    WHERE value < :most OR (value = :most AND ("totalTokens" < :tokens OR ("totalTokens" = :tokens AND key > :lastKey)))
    ORDER BY value DESC, "totalTokens" DESC, key`
  const { value: most = MAX_SUM, totalTokens: tokens = MAX_SUM, key: lastKey = first } = after ?? {}
  return sql.page<Point>(text, { ...params, most, tokens, lastKey }, limit)
}

function valueOf(by: SqlGroup, sort: UsageSort): string {
  if (sort === 'failed' && by === 'tool') return 'errors'
  return { cost: '"costNanos"', tokens: '"totalTokens"', events: 'events', runs: 'runs', failed: 'failed' }[sort]
}

async function nameOf(sql: Sql, by: SqlGroup, tenantId: string, key: string): Promise<string | null> {
  if (key === '') return ''
  const { name: text } = GROUPS[by]
  return text && ((await sql.get<{ name: string }>(text, { tenantId, key }))?.name ?? null)
}

async function uncostedOfPoints(
  sql: Sql,
  environmentId: string,
  window: SqlWindow,
  steps: Steps,
  keys: ReadonlySet<string>,
) {
  const { by } = window
  if (by === 'tool') return new Map<string, UncostedSum[]>()
  if (by === 'session' || by === 'user' || by === 'promptVersion') {
    const params = { env: environmentId, from: steps.from, to: steps.to, userKey: userKeyOf(window) }
    const runs = { text: rowsOf(sql, window), params }
    return readUncostedRuns(sql, runs, steps, keys, by)
  }
  const key = by === 'model' ? 'model_key' : 'agent_id'
  const sums = await readUncostedSums(sql, environmentId, { key, part: window.part, ...steps })
  return Map.groupBy(sums, ({ step, key: of }) => `${step} ${of}`)
}

async function readLatencies(sql: Sql, environmentId: string, { by, part }: SqlWindow, steps: Steps) {
  const { latencies } = GROUPS[by]
  if (latencies.length === 0) return new Map<string, LatencyRow>()
  const step = 'CAST((hour - :start) / :stepMs AS BIGINT) AS step'
  const texts = latencies.map(([rollup, columns]) => {
    const called = rollup === 'tools' ? ' AND bucket >= 0' : ''
    return `SELECT bucket, calls, ${step}, ${columns} FROM ${rowsInHours(sql, rollup, part)}${called}`
  })
  const text = percentilesBy('step, key, call', texts.join(' UNION ALL '))
  const rollups = latencies.map(([rollup]) => rollup)
  const params = { env: environmentId, ...steps, ...partParams(sql, part, ...rollups) }
  const rows = await sql.all<LatencyRow & { step: number; key: string; call: Call }>(text, params)
  return new Map(rows.map((row) => [`${row.step} ${row.key} ${row.call}`, latencyRow(row)]))
}

export const usageActs = read({ readUsage })

/** By hour, agent and model key. A part of an hour is counted at its start. */
async function readUsage(sql: Sql, environmentId: string, from: number, to: number, page: UsagePage) {
  const part = await readPartHours(sql, environmentId, { from, to, stepMs: Math.max(to - from, 1) })
  // Cut the page before agents and models are joined, in primary key order: only its rows are summed.
  // Each table gets the environment as a parameter: Citus does not derive it through the grouped subquery.
  const sums = `SELECT hour, agent_id, model_key, ${sumsOf(['events', ...USAGE_COLUMNS])}
    FROM ${rowsInHours(sql, 'hours', part)} AND (hour, agent_id, model_key) > (:hour, :agentId, :modelKey)
    GROUP BY hour, agent_id, model_key HAVING SUM(events) > 0
    ORDER BY hour, agent_id, model_key LIMIT :most`
  const text = `SELECT u.hour, u.agent_id AS "agentId", u.model_key AS "modelKey", COALESCE(a.display_name, a.name) AS "agentName",
      COALESCE(m.model, '') AS model, events, "promptTokens", "completionTokens", "totalTokens", "costNanos"
    FROM (${sums}) u
    JOIN agents a ON a.environment_id = :env AND a.id = u.agent_id
    LEFT JOIN models m ON m.environment_id = :env AND m.model_key = u.model_key
    ORDER BY u.hour, u.agent_id, u.model_key`
  const { hour, agentId, modelKey } = page.after ?? { hour: from, agentId: NIL_UUID, modelKey: '' }
  const place = { hour, agentId, modelKey, from: hour, to, most: page.limit + 1 }
  const params = { env: environmentId, ...place, ...partParams(sql, part, 'hours') }
  const { rows, more } = await sql.page<Omit<UsageHourRow, 'uncosted'>>(text, params, page.limit)
  const uncosted = await uncostedOfHours(sql, environmentId, rows, part)
  const withUncosted = rows.map((row): UsageHourRow => {
    return { ...row, uncosted: uncosted.get(`${hourOf(row.hour)} ${row.agentId} ${row.model}`) ?? [] }
  })
  return { rows: withUncosted, more }
}

async function uncostedOfHours(sql: Sql, environmentId: string, rows: readonly { hour: number }[], part: PartHours) {
  const [first, last] = [rows[0]?.hour, rows.at(-1)?.hour]
  if (first === undefined || last === undefined) return new Map<string, UncostedSum[]>()
  const hours = { from: first, to: last + 1, start: first, stepMs: HOUR_MS, part }
  const sums = await readUncostedSums(sql, environmentId, { key: 'agent_id', ...hours })
  return Map.groupBy(sums, ({ at, key, model }) => `${at} ${key} ${model}`)
}

interface Wait {
  key: string
  ms: number
}

/**
 * How long people waited for the agents: for the outcome of a run, and for the decision of an approval. Exact, from the rows.
 * Returns the waits of an agent by its internal id. A request names its agent by the external id, or its run does.
 */
async function readWaits(sql: Sql, environmentId: string, { from, to }: { from: number; to: number }) {
  const params = { env: environmentId, from, to }
  const runs = await sql.all<Wait>(
    `SELECT agent_id AS key, ended_at - started_at AS ms FROM runs
      WHERE environment_id = :env AND started_at >= :from AND started_at < :to AND ended_at IS NOT NULL AND rule_closed_at IS NULL
      ORDER BY started_at DESC, id DESC LIMIT ${LIMITS.usageWaits}`,
    params,
  )
  const decided = await sql.all<Wait>(
    `SELECT agent_id AS key, decided_at - created_at AS ms FROM approvals
      WHERE environment_id = :env AND created_at >= :from AND created_at < :to AND status IN ('APPROVED', 'REJECTED')
        AND agent_id IS NOT NULL AND decided_at IS NOT NULL AND imported_at IS NULL
      ORDER BY created_at DESC, id DESC LIMIT ${LIMITS.usageWaits}`,
    params,
  )
  const named = Map.groupBy(decided, ({ key }) => key)
  const byKey = new Map([...named].map(([externalId, waits]) => [agentKey(externalId, ''), waits]))
  const agents = byKey.size === 0 ? [] : await agentsOf(sql, environmentId, [...byKey.keys()])
  const approvals = new Map(agents.map(({ id, key }) => [id, byKey.get(key) ?? []]))
  const ofRuns = Map.groupBy(runs, ({ key }) => key)
  return (agentId: string): Waiting => ({
    runs: percentilesOf(ofRuns.get(agentId) ?? []),
    approvals: percentilesOf(approvals.get(agentId) ?? []),
  })
}

function agentsOf(sql: Sql, environmentId: string, keys: string[]) {
  const text = 'SELECT id, agent_key AS key FROM agents WHERE environment_id = :env AND agent_key IN (:keys)'
  return allIn<{ id: string; key: string }>(sql, text, { env: environmentId, keys })
}

/** The smallest values that at least half, and at least 95 percent, of the waits do not exceed. */
function percentilesOf(waits: readonly Wait[]): LatencyRow | null {
  const sorted = waits.map(({ ms }) => ms).toSorted((a, b) => a - b)
  const at = (percent: number) => sorted[Math.ceil((sorted.length * percent) / 100) - 1] ?? 0
  return sorted.length === 0 ? null : { calls: sorted.length, p50: at(50), p95: at(95), former: 0 }
}
