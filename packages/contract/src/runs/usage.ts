import Type, { type Static } from 'typebox'
import { nullableText, cursor, nextCursor, pageLimit, time, uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { Usage } from './run.ts'

/** Cost of calls without a recorded cost, by the price table. `usage.cost` contains only costs that clients sent. */
export const ESTIMATE = {
  estimatedCost: Type.Unsafe<number | null>({
    type: ['number', 'null'],
    minimum: 0,
    description:
      'What the calls without a cost probably cost, in US dollars by the price table; null if none of them has a price. Add it to usage.cost for the whole',
  }),
  priceTable: nullableText(
    'Name and version of the price table behind estimatedCost, with a digest of the prices of the workspace; null if there is nothing to estimate',
  ),
  unpricedCalls: Type.Integer({
    minimum: 0,
    description: 'Calls without a cost whose model has no price: estimatedCost leaves them out',
  }),
}

export interface EstimateFields {
  estimatedCost: number | null
  priceTable: string | null
  unpricedCalls: number
}

const PART_HOURS = `Of an hour in which it lies, each event counts by its own time; an hour with more than ${LIMITS.usagePartEvents} events counts as a whole where it begins`

export const UsageQuery = Type.Object({
  from: time(`Start of the window, inclusive. ${PART_HOURS}`),
  to: time('End of the window, exclusive, as exact as from. At most 31 days after from'),
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
})

/** Usage of one agent and model in one hour. */
export const UsageHour = Type.Object(
  {
    hour: time('Start of the hour, by event time; the start of the window, if that is inside of an hour'),
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
  from: time(`Start of the window, inclusive. ${PART_HOURS}`),
  to: time('End of the window, exclusive, as exact as from'),
  by: Type.Enum(['agent', 'model', 'promptVersion', 'tool', 'session', 'user', 'tag', 'metadata'], {
    description:
      `What to sum up by. By session and user, the newest ${LIMITS.usageSessionRuns} runs of the window with one count; ` +
      `by tag and metadata, the newest ${LIMITS.usageLabelRuns}. A run with several tags counts for each`,
  }),
  step: Type.Enum(['hour', 'day', 'month', 'window'], {
    description: `Length of a point. window: one point for the whole window. Hours begin as in UTC, days and months at midnight in the zone; the first one begins at from. At most ${LIMITS.usageSteps} steps`,
  }),
  zone: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: LIMITS.zoneChars,
      default: 'UTC',
      description: 'Time zone of days and months, such as Europe/Berlin',
    }),
  ),
  user: Type.Optional(
    Type.String({ minLength: 1, maxLength: LIMITS.textChars, description: 'Only with by=user: this end user alone' }),
  ),
  metadata: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: LIMITS.searchChars,
      description: 'Only with by=metadata: the key, such as task',
    }),
  ),
  sort: Type.Optional(
    Type.Enum(['cost', 'tokens', 'events', 'runs', 'failed'], {
      description:
        'Only with the step window: the greatest value first, then the most tokens. cost is the sent cost and the estimated cost; failed counts runs, or calls by tool. Without sort: by time, then by key',
    }),
  ),
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.usagePointsPage),
  cursor,
})

export type UsagePointsQuery = Static<typeof UsagePointsQuery>

export const Latency = Type.Unsafe<{ calls: number; p50Ms: number; p95Ms: number; isApproximate: boolean } | null>({
  type: ['object', 'null'],
  description: 'Latency of the calls that tell it, at most 1 % from the exact percentile; null if none does',
  required: ['calls', 'p50Ms', 'p95Ms', 'isApproximate'],
  properties: {
    calls: { type: 'integer', minimum: 1 },
    p50Ms: { type: 'number', minimum: 0 },
    p95Ms: { type: 'number', minimum: 0 },
    isApproximate: {
      type: 'boolean',
      description: 'Calls that an earlier version counted are among them: at most 10 % from the exact percentile',
    },
  },
})

export type Latency = Static<typeof Latency>

const counted = (description: string) => Type.Integer({ minimum: 0, description })

const ToolCalls = Type.Unsafe<{ failed: number; blocked: number; approvals: number } | null>({
  type: ['object', 'null'],
  description: 'By tool: how its calls went. Otherwise null',
  required: ['failed', 'blocked', 'approvals'],
  properties: {
    failed: { type: 'integer', minimum: 0, description: 'Calls with an error' },
    blocked: { type: 'integer', minimum: 0, description: 'Decisions of policies that blocked a call' },
    approvals: { type: 'integer', minimum: 0, description: 'Decisions that held a call back for an approval' },
  },
})

const Waiting = Type.Unsafe<{ runs: Latency; approvals: Latency } | null>({
  type: ['object', 'null'],
  description:
    'By agent with the step window: how long people waited, exactly. runs: from the start of a run to its outcome, of the newest ' +
    `${LIMITS.usageWaits} that ended; approvals: from the request to the decision, of the newest ${LIMITS.usageWaits} decided ones. Otherwise null`,
  required: ['runs', 'approvals'],
  properties: { runs: Latency, approvals: Latency },
})

/** Usage of one step of time and one agent, model, prompt version, tool, session or label of runs. */
export const UsagePoint = Type.Object(
  {
    from: time('Start of the step, by event time'),
    key: Type.String({
      description:
        'Internal agent id, prompt version id, or key of the model, tool, session or user; a tag, or a value of metadata',
    }),
    name: nullableText(
      'Name of the agent, model or tool, the prompt and its version, the id of the session or user, the tag, or the value of metadata. Empty: the events name no model, or no tool. Null: not a prompt version of the workspace',
    ),
    events: counted('Events of this step; by session, of the runs that started in it; by tool, its calls'),
    runs: counted(
      'Runs that started in this step; by prompt version, that first used it in this step. By model and tool, 0',
    ),
    completed: counted('Those that completed'),
    failed: counted('Those that failed'),
    cancelled: counted('Those that were cancelled'),
    usage: Usage,
    ...ESTIMATE,
    llmLatency: Latency,
    toolLatency: Latency,
    calls: ToolCalls,
    waiting: Waiting,
  },
  {
    $id: 'UsagePoint',
    description: 'Usage of one step of time by agent, model, prompt version, tool, session, user, tag or metadata',
  },
)
export type UsagePoint = Static<typeof UsagePoint>

export const UsagePointPage = Type.Object({ items: Type.Array(UsagePoint), nextCursor }, { $id: 'UsagePointPage' })
export type UsagePointPage = Static<typeof UsagePointPage>
