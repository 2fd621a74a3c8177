/**
 * Tokens of the calls without a cost, by hour, agent, model and length of context. They are priced when they are read, so a
 * changed price applies to all of them at once.
 */
import { TOKEN_PARTS, type UncostedCalls, type CallTokens } from '../../uncosted.ts'
import type { NewEvent } from '../../events.ts'
import { insertJsonRows, type InsertedTable } from '../rows/json-rows.ts'
import type { Buckets } from './known-names.ts'
import type { Sql } from '../sql.ts'
import { adding, saturating } from './sums.ts'
import { PART_COLUMNS } from './uncosted-sums.ts'
import { hourOf } from './usage.ts'

export interface UncostedChange extends UncostedCalls {
  hour: number
  agentId: string
}

/** `agentId`: the internal id of the run's agent. */
export function countUncosted(
  changes: Map<string, UncostedChange>,
  agentId: string,
  { time, usage }: Pick<NewEvent, 'time' | 'usage'>,
  tokens: CallTokens,
  times = 1,
): void {
  const [hour, model] = [hourOf(time), usage?.model ?? '']
  const place = `${hour} ${agentId} ${tokens.context} ${model}`
  const change = changes.get(place)
  if (change === undefined) changes.set(place, { ...tokens, hour, agentId, model, calls: times })
  else {
    change.calls += times
    for (const part of TOKEN_PARTS) change[part] = saturating(change[part], tokens[part])
  }
}

const SUMMED = ['calls', ...TOKEN_PARTS.map((part) => PART_COLUMNS[part])]

const UNCOSTED: InsertedTable = {
  name: 'uncosted_hours AS u',
  columns: {
    hour: 'bigint',
    agent_id: 'uuid',
    model_key: 'text',
    context: 'integer',
    slot: 'integer',
    ...Object.fromEntries(SUMMED.map((column) => [column, 'bigint'] as const)),
  },
  conflict: `ON CONFLICT (environment_id, hour, agent_id, model_key, context, slot)
    DO UPDATE SET ${adding('u', SUMMED)}`,
}

/** `slot`: no concurrent transaction writes rows of this number. */
export function addUncostedHours(
  sql: Sql,
  environmentId: string,
  changes: ReadonlyMap<string, UncostedChange>,
  { models }: Pick<Buckets, 'models'>,
  slot: number,
): Promise<unknown> {
  // Models of one bucket share a row, which a statement may change only once.
  const merged = new Map<string, UncostedChange>()
  for (const change of changes.values()) {
    const model = models.get(change.model) ?? ''
    const place = `${change.hour} ${change.agentId} ${change.context} ${model}`
    const same = merged.get(place)
    if (same === undefined) merged.set(place, { ...change, model })
    else {
      same.calls += change.calls
      for (const part of TOKEN_PARTS) same[part] = saturating(same[part], change[part])
    }
  }
  const rows = [...merged.values()].map((change) => {
    const { hour, agentId, model, context, calls } = change
    return [hour, agentId, model, context, slot, calls, ...TOKEN_PARTS.map((part) => change[part])]
  })
  return insertJsonRows(sql, UNCOSTED, environmentId, rows)
}
