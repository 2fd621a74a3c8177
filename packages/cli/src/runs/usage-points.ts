/**
 * Usage with outcomes and latencies: one row for each agent, model, prompt version, tool, session, user, tag, metadata value or
 * month.
 */
import { dateOf } from '@tacho/contract/engine/days.ts'
import { duration, number } from '@tacho/contract/engine/format.ts'
import type { Latency, UsagePoint } from '@tacho/contract/runs/usage.ts'
import { currentLook } from '../engine/display.ts'
import { spokenUsage, type Column } from '../engine/output.ts'
import { barsOf, addTo, costCell, emptySum, weight, type UsageSum } from './usage-days.ts'

export const POINT_KEYS = [
  'agent',
  'model',
  'prompt-version',
  'tool',
  'session',
  'user',
  'tag',
  'metadata',
  'month',
  'day',
] as const
export type PointKey = (typeof POINT_KEYS)[number]

export interface PointSum extends UsageSum {
  runs: number
  completed: number
  failed: number
  cancelled: number
  /** Null if no call recorded a latency, or the row sums several agents. */
  llmLatency: Latency
  toolLatency: Latency
  /** Set only in sums by tool. */
  calls: UsagePoint['calls']
  /** Set only in sums by agent. */
  waiting: UsagePoint['waiting']
}

const RUN_KEYS: ReadonlySet<PointKey> = new Set(['session', 'user', 'tag', 'metadata'])
/** Whether each row sums runs. There may be many rows: the most expensive come first, page by page. */
export const isOfRuns = (by: PointKey): by is 'session' | 'user' | 'tag' | 'metadata' => RUN_KEYS.has(by)

/** Whether each row is a period, over all agents. */
const isStep = (by: PointKey): by is 'month' | 'day' => by === 'month' || by === 'day'
const DATE_CHARS = { day: 10, month: 7 }

/** The query for this breakdown. */
export function pointQuery(by: PointKey) {
  if (isStep(by)) return { by: 'agent', step: by } as const
  if (isOfRuns(by)) return { by, step: 'window', sort: 'cost' } as const
  return { by: by === 'prompt-version' ? 'promptVersion' : by, step: 'window' } as const
}

/**
 * Sums in this order: days and months by date, tools by calls, others by cost and then tokens. Sums by model leave out
 * points without a model. Stops after `most` + 1 sums.
 */
export async function sumPoints(
  points: AsyncIterable<UsagePoint>,
  { by, zone }: { by: PointKey; zone: string },
  most = Infinity,
): Promise<PointSum[]> {
  const sums = new Map<string, PointSum>()
  for await (const point of points) {
    if (by === 'model' && point.name === '') continue
    const key = isStep(by) ? dateOf(Date.parse(point.from), zone).slice(0, DATE_CHARS[by]) : (point.name ?? point.key)
    // Two agents can have the same name.
    const place = isStep(by) ? key : point.key
    const sum = sums.get(place) ?? emptyPoint(key, isStep(by) ? null : point)
    addTo(sum, point)
    for (const name of COUNTS) sum[name] += point[name]
    sums.set(place, sum)
    if (sums.size > most) break
  }
  const all = [...sums.values()]
  if (isStep(by)) return all.toSorted((one, other) => (one.key < other.key ? -1 : 1))
  if (by === 'tool') return all.toSorted((one, other) => other.events - one.events)
  return all.toSorted((one, other) => weight(other) - weight(one) || other.totalTokens - one.totalTokens)
}

const COUNTS = ['runs', 'completed', 'failed', 'cancelled'] as const

function emptyPoint(key: string, point: UsagePoint | null): PointSum {
  const { llmLatency = null, toolLatency = null, calls = null, waiting = null } = point ?? {}
  return { ...emptySum(key), runs: 0, completed: 0, failed: 0, cancelled: 0, llmLatency, toolLatency, calls, waiting }
}

export function pointColumns(by: PointKey): Column[] {
  if (by === 'tool') return TOOL_COLUMNS
  const latencies = [
    { title: 'MODEL P50', align: 'right', isOptional: true },
    { title: 'MODEL P95', align: 'right', isOptional: true },
    { title: 'TOOL P50', align: 'right', isOptional: true },
    { title: 'TOOL P95', align: 'right', isOptional: true },
  ] as const
  return [
    { title: by.replace('-', ' ').toUpperCase() },
    // No outcomes by model: a run may call several models.
    ...(by === 'model' ? [] : ([...OUTCOMES].map((title) => ({ title, align: 'right' })) as Column[])),
    { title: 'TOKENS', align: 'right' },
    { title: 'COST', align: 'right' },
    ...(isTerminal() ? [{ title: '', as: 'whole' as const, isOptional: true as const }] : []),
    ...(hasLatencies(by) ? latencies : []),
    ...(by === 'agent' ? WAITING_COLUMNS : []),
  ]
}

const WAITING_COLUMNS: Column[] = ['RUN P50', 'RUN P95', 'APPROVAL P50', 'APPROVAL P95'].map((title) => {
  return { title, align: 'right', isOptional: true }
})

const OUTCOMES = ['RUNS', 'COMPLETED', 'FAILED', 'CANCELLED']

const hasLatencies = (by: PointKey): boolean => !isStep(by) && !isOfRuns(by)

const TOOL_COLUMNS: Column[] = [
  { title: 'TOOL' },
  { title: 'CALLS', align: 'right' },
  { title: 'FAILED', align: 'right' },
  { title: 'BLOCKED', align: 'right' },
  { title: 'APPROVALS', align: 'right', isOptional: true },
  { title: 'P50', align: 'right' },
  { title: 'P95', align: 'right' },
]

function toolRow({ key, events, calls, toolLatency }: PointSum): string[] {
  const counts = [events, calls?.failed ?? 0, calls?.blocked ?? 0, calls?.approvals ?? 0]
  return [key === '' ? 'no name' : key, ...counts.map(number), ...latencyCells(toolLatency)]
}

export function pointRows(by: PointKey, sums: readonly PointSum[]): string[][] {
  if (by === 'tool') return sums.map(toolRow)
  const bars = isTerminal() ? barsOf(sums).map((bar) => [bar]) : []
  return sums.map((sum, at) => [
    sum.key,
    ...(by === 'model' ? [] : COUNTS.map((name) => number(sum[name]))),
    spokenUsage(sum.totalTokens),
    costCell(sum),
    ...(bars[at] ?? []),
    ...(hasLatencies(by) ? [...latencyCells(sum.llmLatency), ...latencyCells(sum.toolLatency)] : []),
    ...(by === 'agent'
      ? [sum.waiting?.runs, sum.waiting?.approvals].flatMap((wait) => latencyCells(wait ?? null))
      : []),
  ])
}

function latencyCells(latency: Latency): string[] {
  if (latency === null) return ['', '']
  return [latency.p50Ms, latency.p95Ms].map((ms) => `${latency.isApproximate ? '≈' : ''}${duration(ms)}`)
}

/** Whether to draw bars: a program needs none. */
function isTerminal(): boolean {
  return currentLook().width !== null
}
