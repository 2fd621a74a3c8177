/** Usage of agents, by hour and model. */
import type { NewEvent } from '../../events.ts'
import type { Page } from '../../page.ts'
import type { UsageHourRow, UsagePage } from '../../runs.ts'
import type { UncostedSum } from '../../uncosted.ts'
import { read } from '../act.ts'
import { insertJsonRows, type InsertedTable } from '../rows/json-rows.ts'
import type { Buckets } from './known-names.ts'
import type { Sql } from '../sql.ts'
import { adding, addUsage, noUsage, sum, SUM_TYPES, SUMS, sumValues, type UsageSums } from './sums.ts'
import type { RunState } from '../append/run-state.ts'
import { readUncostedSums } from './uncosted-sums.ts'

export const usageActs = {
  readUsage: read(readUsage),
}

/** What the events of a transaction add to an hour. Runs move to another hour if an earlier event arrives. */
export interface HourChange extends UsageSums {
  hour: number
  agentId: string
  /** Empty for events without a model, and for runs. */
  model: string
  events: number
  /** Runs that start in this hour, and how they ended. */
  runs: number
  completed: number
  failed: number
  cancelled: number
}

const COUNTS = ['events', 'runs', 'completed', 'failed', 'cancelled'] as const
const OUTCOMES = { RUNNING: null, COMPLETED: 'completed', FAILED: 'failed', CANCELLED: 'cancelled' } as const

const HOUR_MS = 3_600_000

export const hourOf = (time: number): number => Math.floor(time / HOUR_MS) * HOUR_MS

function changeOf(hours: Map<string, HourChange>, agentId: string, time: number, model: string): HourChange {
  const hour = hourOf(time)
  const key = `${hour} ${agentId} ${model}`
  let change = hours.get(key)
  if (change === undefined) {
    const counts = { events: 0, runs: 0, completed: 0, failed: 0, cancelled: 0 }
    hours.set(key, (change = { hour, agentId, model, ...counts, ...noUsage() }))
  }
  return change
}

/** `agentId`: the internal id of the run's agent. */
export function countForHour(
  hours: Map<string, HourChange>,
  agentId: string,
  { time, usage }: Pick<NewEvent, 'time' | 'usage'>,
  times = 1,
): void {
  const change = changeOf(hours, agentId, time, usage?.model ?? '')
  change.events += times
  if (usage !== null) addUsage(change, usage)
}

/** `times`: -1 takes back what was counted. */
export function countRun(
  hours: Map<string, HourChange>,
  { agentId, startedAt, status }: Pick<RunState, 'agentId' | 'startedAt' | 'status'>,
  times: 1 | -1,
): void {
  const change = changeOf(hours, agentId, startedAt, '')
  change.runs += times
  const outcome = OUTCOMES[status]
  if (outcome !== null) change[outcome] += times
}

const countTypes = Object.fromEntries(COUNTS.map((column) => [column, 'bigint'] as const))

const HOURS: InsertedTable = {
  name: 'usage_hours AS h',
  columns: { hour: 'bigint', agent_id: 'uuid', model_key: 'text', slot: 'integer', ...countTypes, ...SUM_TYPES },
  conflict: `ON CONFLICT (environment_id, hour, agent_id, model_key, slot)
    DO UPDATE SET ${adding('h', [...COUNTS, ...Object.keys(SUM_TYPES)])}`,
}

/** `slot`: no concurrent transaction writes rows of this number. */
export function addHours(
  sql: Sql,
  environmentId: string,
  hours: ReadonlyMap<string, HourChange>,
  { models }: Pick<Buckets, 'models'>,
  slot: number,
): Promise<unknown> {
  // Models of one bucket share a row, which a statement may change only once.
  const merged = new Map<string, HourChange>()
  for (const change of hours.values()) {
    const bucket = models.get(change.model) ?? ''
    const place = `${String(change.hour).padStart(16, '0')} ${change.agentId} ${bucket}`
    const same = merged.get(place)
    if (same === undefined) merged.set(place, { ...change, model: bucket })
    else {
      for (const count of COUNTS) same[count] += change[count]
      addUsage(same, change)
    }
  }
  const rows = [...merged]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, change]) => {
      const { hour, agentId, model } = change
      return [hour, agentId, model, slot, ...COUNTS.map((count) => change[count]), ...sumValues(change)]
    })
  return insertJsonRows(sql, HOURS, environmentId, rows)
}

/** Sorts before the id of every agent. */
export const BEFORE_ALL = '00000000-0000-0000-0000-000000000000'

/**
 * Sums of the hours from `fromHour` to `toHour` (both inclusive, start of the hour), ordered by hour, agent and model
 * key.
 */
async function readUsage(
  sql: Sql,
  environmentId: string,
  fromHour: number,
  toHour: number,
  { limit, after }: UsagePage,
): Promise<Page<UsageHourRow>> {
  // Cut the page before agents and models are joined, in primary key order: only its rows are summed.
  // Each table gets the environment as a parameter: Citus does not derive it through the grouped subquery.
  const sums = `SELECT hour, agent_id, model_key, ${sum('events', 'events')}, ${SUMS}
    FROM usage_hours
    WHERE environment_id = ? AND (hour, agent_id, model_key) > (?, ?, ?) AND hour <= ?
    GROUP BY hour, agent_id, model_key HAVING SUM(events) > 0
    ORDER BY hour, agent_id, model_key LIMIT ?`
  const text = `SELECT u.hour, u.agent_id AS "agentId", u.model_key AS "modelKey", COALESCE(a.display_name, a.name) AS "agentName",
      COALESCE(m.model, '') AS model, events, "promptTokens", "completionTokens", "totalTokens", "costNanos"
    FROM (${sums}) u
    JOIN agents a ON a.environment_id = ? AND a.id = u.agent_id
    LEFT JOIN models m ON m.environment_id = ? AND m.model_key = u.model_key
    ORDER BY u.hour, u.agent_id, u.model_key`
  const { hour, agentId, modelKey } = after ?? { hour: fromHour, agentId: BEFORE_ALL, modelKey: '' }
  const ofPage = [environmentId, hour, agentId, modelKey, toHour, limit + 1]
  const page = await sql.page<Omit<UsageHourRow, 'uncosted'>>(text, [...ofPage, environmentId, environmentId], limit)
  const uncosted = await readUncosted(sql, environmentId, page.rows)
  const placeOf = (row: (typeof page.rows)[number]) => `${row.hour} ${row.agentId} ${row.model}`
  return { ...page, rows: page.rows.map((row) => ({ ...row, uncosted: uncosted.get(placeOf(row)) ?? [] })) }
}

/** By hour, agent and model. */
async function readUncosted(
  sql: Sql,
  environmentId: string,
  rows: readonly Pick<UsageHourRow, 'hour'>[],
): Promise<Map<string, UncostedSum[]>> {
  const [first, last] = [rows[0]?.hour, rows.at(-1)?.hour]
  if (first === undefined || last === undefined) return new Map()
  const hours = { from: first, to: last + HOUR_MS, start: 0, stepMs: HOUR_MS }
  const sums = await readUncostedSums(sql, environmentId, { key: 'agent_id', ...hours })
  return Map.groupBy(sums, ({ at, key, model }) => `${at} ${key} ${model}`)
}
