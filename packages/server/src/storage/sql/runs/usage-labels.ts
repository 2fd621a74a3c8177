/**
 * Usage by tag or by the values of one key of metadata. Rows of runs store these as lines of a text, and a run has
 * several tags, so the sums are calculated here.
 */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { RunStatus } from '@tacho/contract/runs/run.ts'
import { firstRows, type Page } from '../../engine/page.ts'
import { DAY_MS } from '../../engine/times.ts'
import { readMetadata, readTraits, soughtTrait } from '../../runs/runs.ts'
import {
  readUncosted,
  type UncostedSum,
  byStep,
  byValue,
  type UsagePointPage,
  type UsagePointRow,
  type UsageSort,
  type UsageSums,
  type UsageWindow,
} from '../../runs/usage.ts'
import { contains, selectList, type Sql } from '../engine/sql.ts'
import { addUsage, noUsage, saturating } from './rollup.ts'
import { addCalls } from './uncosted-sums.ts'

type LabelWindow = UsageWindow & { by: 'tag' | 'metadata' }

interface LabelledRun extends UsageSums {
  startedAt: number
  status: RunStatus
  eventCount: number
  traits: string
  uncosted: string | null
}

type Point = Omit<UsagePointRow, 'uncosted'> & { sums: Map<string, UncostedSum> }

export async function readLabelPoints(sql: Sql, environmentId: string, window: LabelWindow, page: UsagePointPage) {
  const { from, to, stepMs } = window
  const sought = soughtTrait(window.by === 'tag' ? 'tag' : 'meta', window.label ?? null)
  const text = `SELECT ${selectList(
    `started_at status event_count traits uncosted prompt_tokens completion_tokens total_tokens cost_nanos`,
  )} FROM runs WHERE environment_id = :env AND started_at >= :from AND started_at < :to AND ${contains(sql, 'traits', ':sought')}
    ORDER BY started_at DESC LIMIT ${LIMITS.usageLabelRuns}`
  const runs = await sql.all<LabelledRun>(text, { env: environmentId, from, to, sought })
  const points = new Map<string, Point>()
  for (const run of runs) {
    const step = Math.floor((run.startedAt - from) / stepMs)
    for (const label of labelsOf(run, window))
      addRun(points, `${step} ${label}`, step, label, run, Math.min(stepMs, DAY_MS))
  }
  return pageOf([...points.values()], page)
}

function labelsOf({ traits }: LabelledRun, { by, label = '' }: LabelWindow): string[] {
  const known = readTraits(traits)
  if (by === 'tag') return known.tag
  const values = readMetadata(known)
  return Object.hasOwn(values, label) ? [values[label]!] : []
}

function addRun(
  points: Map<string, Point>,
  place: string,
  step: number,
  key: string,
  run: LabelledRun,
  periodMs: number,
) {
  let point = points.get(place)
  if (point === undefined) points.set(place, (point = noPoint(step, key)))
  point.runs++
  point.events = saturating(point.events, run.eventCount)
  if (run.status !== 'RUNNING') point[OUTCOMES[run.status]]++
  addUsage(point, run)
  const at = run.startedAt - (run.startedAt % periodMs)
  for (const { versionId: _, ...calls } of readUncosted(run.uncosted)) addCalls(point.sums, { ...calls, at })
}

const OUTCOMES = { COMPLETED: 'completed', FAILED: 'failed', CANCELLED: 'cancelled' } as const

function noPoint(step: number, key: string): Point {
  const none = { events: 0, runs: 0, completed: 0, failed: 0, cancelled: 0, value: 0 }
  return {
    step,
    key,
    name: key,
    ...none,
    ...noUsage(),
    calls: null,
    llm: null,
    tool: null,
    waiting: null,
    sums: new Map(),
  }
}

/** Orders points as for other groups: by step and key, or the greatest value first. */
function pageOf(points: Point[], { limit, sort, after }: UsagePointPage): Page<UsagePointRow> {
  if (sort !== undefined) for (const point of points) point.value = valueOf(point, sort)
  const order = sort === undefined ? byStep : byValue
  const place = after && { value: 0, totalTokens: 0, ...after }
  const laterPoints = points.filter((point) => place === null || order(place, point) < 0).toSorted(order)
  const { rows, more } = firstRows(laterPoints, limit)
  return { rows: rows.map(({ sums, ...point }) => ({ ...point, uncosted: [...sums.values()] })), more }
}

function valueOf(point: Point, sort: UsageSort): number {
  const { costNanos, totalTokens, events, runs, failed } = point
  return { cost: costNanos, tokens: totalTokens, events, runs, failed }[sort]
}
