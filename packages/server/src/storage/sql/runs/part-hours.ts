/**
 * Usage is counted by hour. If a step begins or ends inside an hour, the events and runs of that hour are counted one
 * by one, each in the step of its time. Some hours count as a whole, in the step in which they begin: those with more
 * events than LIMITS.usagePartEvents, with events that retention has deleted, or with events of an earlier version. So
 * consecutive steps always add up to the total.
 */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { HOUR_MS, hourOf } from '../../engine/times.ts'
import { readCounted } from '../../record/events.ts'
import { allIn, fieldOf, rowsParameter } from '../engine/rows.ts'
import { textKey } from '../engine/keys.ts'
import { eventEnvironment, type NamedParams, type Sql } from '../engine/sql.ts'
import { OTHER_KEY, type Kind, type NameKeys } from './known-names.ts'
import { changedRows } from './rollup.ts'
import {
  countForAgent,
  countRun,
  countVersionCall,
  HOURS,
  LATENCIES,
  noCounts,
  TOOLS,
  UNCOSTED,
  usedNames,
  VERSION_LATENCIES,
  type CountedRun,
} from './usage-counts.ts'

const ROLLUPS = {
  hours: HOURS,
  latencies: LATENCIES,
  tools: TOOLS,
  uncosted: UNCOSTED,
  versionLatencies: VERSION_LATENCIES,
}

/** Null: the period has only whole hours. */
export type PartHours = { hours: number[]; counts: ReturnType<typeof noCounts>; keys: NameKeys } | null

export interface Steps {
  from: number
  to: number
  stepMs: number
}

export async function readPartHours(sql: Sql, environmentId: string, { from, to, stepMs }: Steps): Promise<PartHours> {
  if (from >= to) return null
  const inside = from % HOUR_MS === 0 && stepMs % HOUR_MS === 0 ? [] : startsOf(from, to, stepMs)
  const edges = [...inside, to].filter((time) => time % HOUR_MS !== 0)
  const wanted = [...new Set(edges.map(hourOf))].slice(-LIMITS.usagePartHours)
  if (wanted.length === 0) return null
  const sums = await allIn<{ hour: number; events: number; runs: number }>(
    sql,
    `SELECT hour, CAST(SUM(events) AS BIGINT) AS events, CAST(SUM(runs) AS BIGINT) AS runs FROM usage_hours
      WHERE environment_id = :env AND hour IN (:hours) GROUP BY hour`,
    { env: environmentId, hours: wanted },
  )
  const hours: number[] = []
  const counts = noCounts()
  for (const sum of sums) {
    const rows = await rowsOfHour(sql, environmentId, sum)
    if (rows === null) continue
    const placeOf = (time: number) => edges.findLast((edge) => edge <= time && edge > sum.hour) ?? sum.hour
    for (const { agentId, counted, latencyMicros, time, ...row } of rows.events) {
      const read = counted === null ? NOTHING : readCounted({ ...row, counted })
      const latencyMs = latencyMicros === null ? null : latencyMicros / 1_000
      const event = { ...read, eventType: row.eventType, time, latencyMs }
      countForAgent(counts, agentId, event, 1, placeOf(time))
      countVersionCall(counts, event, 1, placeOf(time))
    }
    for (const run of rows.runs) countRun(counts, run, 1, placeOf(run.startedAt))
    hours.push(sum.hour)
  }
  return hours.length === 0 ? null : { hours, counts, keys: await keysOf(sql, environmentId, usedNames(counts)) }
}

function startsOf(from: number, to: number, stepMs: number): number[] {
  return Array.from({ length: Math.ceil((to - from) / stepMs) }, (_, step) => from + step * stepMs)
}

const CALLS: ReadonlySet<string> = new Set(['LLM_CALL', 'TOOL_CALL'])
const NOTHING = { usage: null, toolUse: null, promptUse: null }

interface EventOfHour {
  agentId: string
  time: number
  eventType: string
  latencyMicros: number | null
  problem: Parameters<typeof readCounted>[0]['problem']
  tokens: number | null
  costNanos: number | null
  counted: string | null
}

/** Null: the hour counts as a whole. Runs in progress are found by their starts, the newest first. */
async function rowsOfHour(
  sql: Sql,
  environmentId: string,
  { hour, events, runs }: Record<'hour' | 'events' | 'runs', number>,
) {
  if (events > LIMITS.usagePartEvents) return null
  const times = { env: environmentId, from: hour, to: hour + HOUR_MS }
  const started = await sql.all<CountedRun>(
    `SELECT agent_id AS "agentId", started_at AS "startedAt", status FROM runs
      WHERE environment_id = :env AND started_at >= :from AND started_at < :to LIMIT :most`,
    { ...times, most: runs + 1 },
  )
  if (started.length !== runs) return null
  const underWay = `SELECT number, agent_id FROM (SELECT number, agent_id, last_event_at FROM runs
    WHERE environment_id = :env AND started_at < :to ORDER BY started_at DESC, id DESC LIMIT ${LIMITS.usagePartRuns}) page
    WHERE last_event_at >= :from`
  const ofRun = `e.environment_id = ${eventEnvironment(sql)} AND e.run = r.number AND e.time >= :from AND e.time < :to`
  // Read run by run, by the index of event times. Otherwise both engines may read all events of the environment.
  const joined =
    sql.dialect === 'sqlite'
      ? `CROSS JOIN events e WHERE ${ofRun}`
      : `CROSS JOIN LATERAL (SELECT * FROM events e WHERE ${ofRun} OFFSET 0) AS e`
  const hourEvents = await sql.all<EventOfHour>(
    `SELECT r.agent_id AS "agentId", e.time, e.event_type AS "eventType", e.latency_us AS "latencyMicros", e.problem, e.tokens,
        e.cost_nanos AS "costNanos", e.counted
      FROM (${underWay}) r ${joined} LIMIT :most`,
    { ...times, most: events + 1 },
  )
  const isRead = ({ eventType, counted, problem }: EventOfHour) =>
    counted !== null || !(CALLS.has(eventType) || (eventType === 'POLICY_DECISION' && problem !== null))
  return hourEvents.length === events && hourEvents.every(isRead) ? { events: hourEvents, runs: started } : null
}

async function keysOf(sql: Sql, environmentId: string, names: Record<Kind, Set<string>>): Promise<NameKeys> {
  const keysOfKind = async (kind: Kind, column: string) => {
    const keys = new Map(Array.from(names[kind], (name) => [name, name === '' ? '' : textKey(name)]))
    const text = `SELECT ${column} AS key FROM ${kind} WHERE environment_id = :env AND ${column} IN (:keys)`
    const rows = await allIn<{ key: string }>(sql, text, { env: environmentId, keys: [...keys.values()] })
    const stored = new Set(['', ...rows.map(({ key }) => key)])
    return new Map(Array.from(keys, ([name, key]) => [name, stored.has(key) ? key : OTHER_KEY]))
  }
  return { models: await keysOfKind('models', 'model_key'), tools: await keysOfKind('tools', 'tool_key') }
}

type Counted = keyof typeof ROLLUPS

/**
 * SQL after FROM: the rows of a rollup from `:from` to `:to`. With part hours, `partParams` has the other parameters.
 */
export function rowsInHours({ dialect }: Sql, of: Counted, partHours: PartHours): string {
  const { name, columns } = ROLLUPS[of].table
  const [table = ''] = name.split(' ')
  const inHours = 'hour >= :from AND hour < :to'
  if (partHours === null) return `${table} WHERE environment_id = :env AND ${inHours}`
  const read = Object.entries(columns).filter(([column]) => column !== 'slot')
  const isPlain = dialect === 'sqlite'
  const values = read.map(([column, type], at) => `${isPlain ? `value->>${at}` : fieldOf(type, at)} AS ${column}`)
  const elements = (rows: string) =>
    isPlain ? `json_each(:${rows}) AS named` : `jsonb_array_elements(:${rows}::jsonb) AS x`
  const hours = `SELECT ${isPlain ? 'value' : "(x#>>'{}')::bigint"} FROM ${elements('partHours')}`
  return `(SELECT ${read.map(([column]) => column).join(', ')} FROM ${table}
      WHERE environment_id = :env AND ${inHours} AND hour NOT IN (${hours})
    UNION ALL SELECT ${values.join(', ')} FROM ${elements(`${of}Part`)}) AS named WHERE ${inHours}`
}

export function partParams(sql: Sql, partHours: PartHours, ...of: Counted[]): NamedParams {
  if (partHours === null) return {}
  const rows = of.map((name) => [
    `${name}Part`,
    rowsParameter(sql, changedRows(partHours.counts[name], partHours.keys)),
  ])
  return { partHours: JSON.stringify(partHours.hours), ...Object.fromEntries(rows) }
}
