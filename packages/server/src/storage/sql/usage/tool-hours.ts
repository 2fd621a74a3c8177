/** Calls of tools by hour and agent: how they went, and how long they took. */
import type { NewEvent, Problem, ToolUse } from '../../events.ts'
import { insertJsonRows, type InsertedTable } from '../rows/json-rows.ts'
import type { Buckets } from './known-names.ts'
import { bucketOf } from '../../latency-buckets.ts'
import type { Sql } from '../sql.ts'
import { adding } from './sums.ts'
import { hourOf } from './usage.ts'

/** The bucket of calls that do not say how long they took, and of decisions. */
const NO_LATENCY = -1

const COUNTS = ['calls', 'errors', 'blocked', 'approvals'] as const
const PROBLEM_COUNTS = { error: 'errors', blocked: 'blocked', approval: 'approvals' } as const satisfies Record<
  Problem,
  (typeof COUNTS)[number]
>

export interface ToolChange extends Record<(typeof COUNTS)[number], number> {
  hour: number
  agentId: string
  tool: string
  bucket: number
}

/** Negative `times` take back what was counted. */
export function countTool(
  changes: Map<string, ToolChange>,
  agentId: string,
  { time, eventType, latencyMs }: Pick<NewEvent, 'time' | 'eventType' | 'latencyMs'>,
  { tool, problem }: ToolUse,
  times: number,
): void {
  const isCall = eventType === 'TOOL_CALL'
  const [hour, bucket] = [hourOf(time), isCall && latencyMs !== null ? bucketOf(latencyMs) : NO_LATENCY]
  const change = changeOf(changes, { hour, agentId, tool, bucket })
  if (isCall) change.calls += times
  if (problem !== null) change[PROBLEM_COUNTS[problem]] += times
}

function changeOf(
  changes: Map<string, ToolChange>,
  of: Pick<ToolChange, 'hour' | 'agentId' | 'tool' | 'bucket'>,
): ToolChange {
  const place = `${of.hour} ${of.agentId} ${of.bucket} ${of.tool}`
  let change = changes.get(place)
  if (change === undefined) changes.set(place, (change = { ...of, calls: 0, errors: 0, blocked: 0, approvals: 0 }))
  return change
}

const TOOLS: InsertedTable = {
  name: 'tool_hours AS t',
  columns: {
    hour: 'bigint',
    agent_id: 'uuid',
    tool_key: 'text',
    bucket: 'integer',
    slot: 'integer',
    ...Object.fromEntries(COUNTS.map((count) => [count, 'bigint'] as const)),
  },
  conflict: `ON CONFLICT (environment_id, hour, agent_id, tool_key, bucket, slot) DO UPDATE SET ${adding('t', COUNTS)}`,
}

/** `slot`: no concurrent transaction writes rows of this number. */
export function addToolHours(
  sql: Sql,
  environmentId: string,
  changes: ReadonlyMap<string, ToolChange>,
  { tools }: Pick<Buckets, 'tools'>,
  slot: number,
): Promise<unknown> {
  // Tools of one bucket share a row, which a statement may change only once.
  const merged = new Map<string, ToolChange>()
  for (const { hour, agentId, tool, bucket, ...counts } of changes.values()) {
    const same = changeOf(merged, { hour, agentId, tool: tools.get(tool) ?? '', bucket })
    for (const count of COUNTS) same[count] += counts[count]
  }
  const rows = [...merged.values()].map((change) => {
    const { hour, agentId, tool, bucket } = change
    return [hour, agentId, tool, bucket, slot, ...COUNTS.map((count) => change[count])]
  })
  return insertJsonRows(sql, TOOLS, environmentId, rows)
}
