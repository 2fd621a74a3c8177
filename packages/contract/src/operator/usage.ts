import Type, { type Static } from 'typebox'
import { cursor, nextCursor, nullableText, pageLimit, time, uuid } from '../fields.ts'
import { LIMITS } from '../limits.ts'
import { Usage } from '../run.ts'
import { ESTIMATE } from './estimate.ts'

export const UsageQuery = Type.Object({
  from: time('Start of the window; the whole hour is included'),
  to: time('End of the window; the whole hour is included. At most 31 days after from'),
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
})

/** Usage of one agent and model in one hour. */
export const UsageHour = Type.Object(
  {
    hour: time('Start of the hour, by event time'),
    agent: Type.Object({ id: uuid('Internal agent id'), name: Type.String() }),
    model: Type.String({ description: 'Model of the LLM_CALL events; empty for all other events' }),
    events: Type.Integer({ minimum: 0 }),
    usage: Usage,
    ...ESTIMATE,
  },
  { $id: 'UsageHour', description: 'Usage of one hour by agent and model' },
)
export type UsageHour = Static<typeof UsageHour>

export const UsagePage = Type.Object({ items: Type.Array(UsageHour), nextCursor }, { $id: 'UsagePage' })
export type UsagePage = Static<typeof UsagePage>

export const UsagePointsQuery = Type.Object({
  from: time('Start of the window; the whole hour is included'),
  to: time('End of the window; the whole hour is included'),
  by: Type.Enum(['agent', 'model', 'promptVersion'], { description: 'What to sum up by' }),
  step: Type.Enum(['hour', 'day', 'month', 'window'], {
    description: `Length of a point; window: one for the whole window. Days begin at the hour of from; months are those of the calendar, in UTC. At most ${LIMITS.usageSteps} steps`,
  }),
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.usagePointsPage),
  cursor,
})

export type UsagePointsQuery = Static<typeof UsagePointsQuery>

export const Latency = Type.Unsafe<{ calls: number; p50Ms: number; p95Ms: number } | null>({
  type: ['object', 'null'],
  description: 'Latency of the calls that tell it, at most 9 % from the exact percentile; null if none does',
  required: ['calls', 'p50Ms', 'p95Ms'],
  properties: {
    calls: { type: 'integer', minimum: 1 },
    p50Ms: { type: 'number', minimum: 0 },
    p95Ms: { type: 'number', minimum: 0 },
  },
})

export type Latency = Static<typeof Latency>

const counted = (description: string) => Type.Integer({ minimum: 0, description })

/** Usage of one step of time and one agent, model or prompt version. */
export const UsagePoint = Type.Object(
  {
    from: time('Start of the step, by event time'),
    key: Type.String({ description: 'Internal agent id, key of the model, or prompt version id' }),
    name: nullableText(
      'Name of the agent, the model, or the prompt and its version. Empty: no model. Null: not a prompt version of the workspace',
    ),
    events: counted('Events of this step'),
    runs: counted('Runs that started in this step; by prompt version, that first used it in this step. By model, 0'),
    completed: counted('Those that completed'),
    failed: counted('Those that failed'),
    cancelled: counted('Those that were cancelled'),
    usage: Usage,
    ...ESTIMATE,
    llmLatency: Latency,
    toolLatency: Latency,
  },
  { $id: 'UsagePoint', description: 'Usage of one step of time by agent, model or prompt version' },
)
export type UsagePoint = Static<typeof UsagePoint>

export const UsagePointPage = Type.Object({ items: Type.Array(UsagePoint), nextCursor }, { $id: 'UsagePointPage' })
