import Type, { type Static, type TUnsafe } from 'typebox'
import { nextCursor, nullableText, nullableTime, text, time, uuid, CreationHeaders } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { PolicyAction, Severity } from './runtime-config.ts'
import { Condition, givenOnError } from './policy.ts'
import { ON_ERRORS, type OnError } from '../engine/words.ts'
import { ToolLabel } from './tool-labels.ts'
import type { OperatorRoute } from '../web/route.ts'
import { EnvironmentParams, ListQuery } from '../tenants/workspace.ts'

const SIMULATION_STATUSES = ['QUEUED', 'RUNNING', 'DONE', 'CANCELLED', 'FAILED'] as const
const CALL_STATES = ['ran', 'held', 'blocked', 'neverRan'] as const
export type CallState = (typeof CALL_STATES)[number]

const count = (description?: string) => Type.Integer({ minimum: 0, ...(description ? { description } : {}) })

const tool = Type.Object({
  toolName: Type.String(),
  calls: count('Examined calls of the tool'),
  hits: count('Calls the policy would have acted on'),
})

const callState = Type.Object({
  calls: count(),
  hits: count('Calls the policy would have acted on'),
})

/** A large value that the condition compares, and the outcome of its call. */
const largestHit = Type.Object({
  field: Type.String({ description: 'Name in the condition, such as tool.input.amount' }),
  value: Type.Number(),
  toolName: Type.String(),
  state: Type.Enum([...CALL_STATES]),
  runId: Type.String({ description: 'External run id' }),
  id: uuid('Internal run id'),
  eventId: Type.String(),
  at: time('When the call happened'),
  message: Type.String({ description: 'The same as a sentence' }),
})

const hitRun = Type.Object({
  runId: Type.String({ description: 'External run id' }),
  id: uuid('Internal run id'),
  eventId: Type.String({ description: 'The first hit in the run, among the examined calls' }),
  toolName: Type.String(),
  at: time('When that call happened'),
})

/** A question about flows: simulates where a value goes, instead of only the condition. */
const FlowQuestion = Type.Object(
  {
    fromTool: Type.Optional(text(LIMITS.textChars, 'The tool that returned the value; one `*` stands for any text')),
    fromLabel: Type.Optional(text(LIMITS.toolLabelChars, 'Or the label of its output')),
    toTool: Type.Optional(text(LIMITS.textChars, 'The tool that the value may reach; one `*` stands for any text')),
    toLabel: Type.Optional(text(LIMITS.toolLabelChars, 'Or the label of what it does')),
  },
  {
    additionalProperties: false,
    description:
      'Whether a value of one tool reached the input of another, where the condition holds. Give one `from` and one `to`. ' +
      'A value that the user said too does not count',
  },
)
export type FlowQuestion = Static<typeof FlowQuestion>

const SimulatedLabels = Type.Array(ToolLabel, {
  maxItems: LIMITS.toolLabelRules,
  description: 'Labels of tools. Default: those of the environment',
})

const past = Type.Object(
  {
    unknown: count('Calls that depend on what is not recorded: masked, shortened, metadata only. They are no hits'),
    tools: count('Different tools of the examined calls, up to 1,000'),
    labelledTools: count('Those that a label names'),
    calls: count(),
    labelledCalls: count('Calls of tools that a label names'),
    unlabelled: Type.Array(Type.String(), { description: 'The tools without labels that were called most' }),
  },
  { description: 'Of a condition that reads the past of a run, and of a flow' },
)

const flow = Type.Object(
  {
    calls: count('Calls that the value could reach, where the condition holds'),
    reached: count('Those in whose input a value of the source occurs'),
    unknown: count('Those of which the record has too little'),
  },
  { description: 'The answer to the question about the flow' },
)

const decided = {
  approved: count('A person approved the call'),
  rejected: count('A person rejected it'),
  expired: count('Nobody decided before the deadline'),
}

const field = Type.Object({
  field: Type.String({ description: 'Name in the condition, such as tool.input.amount' }),
  recorded: count('Calls that recorded it'),
  types: Type.Record(Type.String(), Type.Integer(), {
    description: 'Number of calls per type: string, double, bool, null, list or map',
  }),
})

const warning = Type.Object({
  code: Type.Enum(['never_recorded', 'unknown_tool', 'unknown_label', 'other_type', 'no_input', 'not_all_looked_at']),
  field: nullableText('The affected field'),
  message: Type.String(),
})

export const SimulationResult = Type.Object(
  {
    calls: count('Recorded tool calls examined, whether they ran or not; each once'),
    states: Type.Optional(
      Type.Object(
        { ran: callState, held: callState, blocked: callState, neverRan: callState },
        {
          description:
            'What became of the calls. held: asked a person and did not run; blocked: a policy blocked it; neverRan: the ' +
            'agent did not start it, for example because its arguments were cut. Absent in results of older versions',
        },
      ),
    ),
    largest: Type.Optional(
      Type.Array(largestHit, { description: 'The hits with the largest number that the condition compares' }),
    ),
    from: time('Start of the examined period'),
    to: time('End of the examined period'),
    matched: count('The condition was true'),
    failures: count('The condition could not be evaluated'),
    hits: count('The policy would have acted: on matches and, with `onError` act, also on failures'),
    blocked: count(),
    asked: count('The policy would have asked a person'),
    warned: count(),
    askedPerDay: Type.Optional(
      Type.Number({
        minimum: 0,
        description: 'How often it would have asked, on average since `askedSince`',
      }),
    ),
    askedSince: Type.Optional(
      time('Start of the period of `askedPerDay`: the first call that was examined, or a day before the end'),
    ),
    past: Type.Optional(past),
    flow: Type.Optional(flow),
    runs: count('Runs with a hit'),
    hitRuns: Type.Array(hitRun, { description: 'The first runs with a hit' }),
    tools: Type.Array(tool, { description: 'The tools with the most hits' }),
    moreTools: Type.Boolean({ description: 'Whether more tools had hits than are listed' }),
    failureReasons: Type.Array(Type.Object({ message: Type.String(), count: count() })),
    approvals: Type.Object(
      { hits: Type.Object(decided), others: Type.Object(decided) },
      {
        description:
          'Outcomes of the approvals requested for the examined calls. others: calls that the policy did not hit, of the tools ' +
          'that its condition names; if it names none, of those of which it hit a call',
      },
    ),
    fields: Type.Array(field, {
      description: 'The parts of tool.input that the condition uses, in calls of the tools that it can match',
    }),
    warnings: Type.Array(warning),
  },
  { $id: 'SimulationResult', description: 'What a policy would have done' },
)
export type SimulationResult = Static<typeof SimulationResult>

const nullableResult: TUnsafe<SimulationResult | null> = Type.Unsafe<SimulationResult | null>({
  anyOf: [SimulationResult, { type: 'null' }],
  description: 'The result; null before the status is DONE',
})

export const Simulation = Type.Object(
  {
    id: uuid('Simulation id'),
    environmentId: uuid('Its environment'),
    status: Type.Enum([...SIMULATION_STATUSES]),
    condition: Type.String(),
    severity: Severity,
    action: PolicyAction,
    onError: Type.Unsafe<OnError | null>({
      enum: [...ON_ERRORS, null],
      description: 'null: requested before this could be set; the severity decides',
    }),
    toolLabels: Type.Unsafe<Static<typeof SimulatedLabels> | null>({
      anyOf: [SimulatedLabels, { type: 'null' }],
      description: 'Labels that it used; null: an earlier version made it',
    }),
    flow: Type.Unsafe<FlowQuestion | null>({
      anyOf: [FlowQuestion, { type: 'null' }],
      description: 'The question about a flow, if it asked one',
    }),
    days: Type.Integer(),
    createdAt: time('When it was requested; later calls are not examined'),
    createdBy: Type.String(),
    endedAt: nullableTime('When it finished, was cancelled or failed'),
    scanned: count('Calls examined so far'),
    total: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      description: 'Calls to examine; null while unknown',
    }),
    error: nullableText('Why it FAILED'),
    result: nullableResult,
  },
  { $id: 'Simulation', description: 'A simulation of a policy on recorded tool calls' },
)
export type Simulation = Static<typeof Simulation>

const SimulationPage = Type.Object({ items: Type.Array(Simulation), nextCursor }, { $id: 'SimulationPage' })

export const NewSimulation = Type.Object(
  {
    condition: Condition,
    action: PolicyAction,
    severity: Type.Optional(
      Type.Enum(Severity.enum, {
        default: 'MEDIUM',
        description: 'Of the policy',
      }),
    ),
    onError: givenOnError,
    toolLabels: Type.Optional(SimulatedLabels),
    flow: Type.Optional(FlowQuestion),
    days: Type.Integer({ minimum: 1, maximum: LIMITS.simulationDaysMax, description: 'How many days to look back' }),
  },
  {
    $id: 'NewSimulation',
    additionalProperties: false,
    examples: [{ condition: 'tool.name == "refund"', action: 'REQUIRE_APPROVAL', severity: 'HIGH', days: 7 }],
  },
)
export type NewSimulation = Static<typeof NewSimulation>

const SimulationParams = Type.Object({
  environmentId: uuid('Environment id'),
  simulationId: text(36, 'Simulation id'),
})

const common = { tag: 'Policies', scopes: [] } as const
const read = { ...common, access: 'viewer', method: 'GET', status: 200 } as const
const write = { ...common, access: 'admin', method: 'POST' } as const

const SIMULATIONS = '/environments/{environmentId}/simulations'

/** Simulations of policies on recorded tool calls, to run before deployment. */
export const simulationRoutes = {
  createSimulation: {
    ...write,
    path: SIMULATIONS,
    audit: { action: 'policy.simulate', target: 'simulation' },
    summary: 'Simulate a policy on the recorded tool calls of the last days, in the background',
    params: EnvironmentParams,
    headers: CreationHeaders,
    body: NewSimulation,
    bodyBytes: LIMITS.operatorBodyBytes,
    status: 202,
    reply: Simulation,
    errors: ['not_found', 'conflict'],
  },
  listSimulations: {
    ...read,
    path: SIMULATIONS,
    summary: 'List the stored simulations, newest first',
    params: EnvironmentParams,
    query: ListQuery,
    reply: SimulationPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  readSimulation: {
    ...read,
    path: `${SIMULATIONS}/{simulationId}`,
    summary: 'Read the progress and result of a simulation',
    params: SimulationParams,
    reply: Simulation,
    errors: ['not_found'],
  },
  cancelSimulation: {
    ...write,
    path: `${SIMULATIONS}/{simulationId}/cancel`,
    audit: { action: 'policy.cancel_simulation', target: 'simulation' },
    summary: 'Cancel a simulation; a finished one stays unchanged',
    params: SimulationParams,
    status: 200,
    reply: Simulation,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
