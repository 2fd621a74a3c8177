import Type, { type Static, type TUnsafe } from 'typebox'
import { nextCursor, nullableText, nullableTime, text, time, uuid } from '../fields.ts'
import { LIMITS } from '../limits.ts'
import { PolicyAction, Severity } from '../runtime-config.ts'
import { Condition } from './policy.ts'

export const SIMULATION_STATUSES = ['QUEUED', 'RUNNING', 'DONE', 'CANCELLED', 'FAILED'] as const
export type SimulationStatus = (typeof SIMULATION_STATUSES)[number]

const count = (description?: string) => Type.Integer({ minimum: 0, ...(description ? { description } : {}) })

const tool = Type.Object({
  toolName: Type.String(),
  calls: count('Calls of the tool that were looked at'),
  hits: count('Those the policy would have acted on'),
})

const hitRun = Type.Object({
  runId: Type.String({ description: 'External run id' }),
  id: uuid('Internal run id'),
  eventId: Type.String({ description: 'The first call of it that was hit, within what was looked at' }),
  toolName: Type.String(),
  at: time('When that call happened'),
})

const decided = {
  approved: count('A person approved the call'),
  rejected: count('A person rejected it'),
  expired: count('Nobody decided in time'),
}

const field = Type.Object({
  field: Type.String({ description: 'As the condition names it, such as tool.input.amount' }),
  recorded: count('Calls that have it'),
  types: Type.Record(Type.String(), Type.Integer(), {
    description: 'How many of them have it as string, double, bool, null, list or map',
  }),
})

const warning = Type.Object({
  code: Type.Enum(['never_recorded', 'other_type', 'no_input', 'not_all_looked_at']),
  field: nullableText('The field it is about'),
  message: Type.String(),
})

export const SimulationResult = Type.Object(
  {
    calls: count('Recorded tool calls that were looked at'),
    from: time('They happened from here'),
    to: time('to here'),
    matched: count('The condition was true'),
    failures: count('The condition could not be evaluated'),
    hits: count('The policy would have acted on: matches, and for HIGH and CRITICAL failures too'),
    blocked: count(),
    asked: count('A person would have been asked'),
    warned: count(),
    runs: count('Runs with a hit'),
    hitRuns: Type.Array(hitRun, { description: 'The first of them' }),
    tools: Type.Array(tool, { description: 'Those with most hits' }),
    moreTools: Type.Boolean({ description: 'Whether there are tools that are not listed' }),
    failureReasons: Type.Array(Type.Object({ message: Type.String(), count: count() })),
    approvals: Type.Object(
      { hits: Type.Object(decided), others: Type.Object(decided) },
      { description: 'What became of the approvals that were asked for the calls, hit by the policy or not' },
    ),
    fields: Type.Array(field, { description: 'The parts of tool.input that the condition names' }),
    warnings: Type.Array(warning),
  },
  { $id: 'SimulationResult', description: 'What a policy would have done' },
)
export type SimulationResult = Static<typeof SimulationResult>

const nullableResult: TUnsafe<SimulationResult | null> = Type.Unsafe<SimulationResult | null>({
  anyOf: [SimulationResult, { type: 'null' }],
  description: 'What has been found; null before it is DONE',
})

export const Simulation = Type.Object(
  {
    id: uuid('Simulation id'),
    environmentId: uuid('Its environment'),
    status: Type.Enum([...SIMULATION_STATUSES]),
    condition: Type.String(),
    severity: Severity,
    action: PolicyAction,
    days: Type.Integer(),
    createdAt: time('When it was asked for; calls until then are looked at'),
    createdBy: Type.String(),
    endedAt: nullableTime('When it was done, cancelled or failed'),
    scanned: count('Calls looked at so far'),
    total: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      description: 'Calls to look at; null while it is not known',
    }),
    error: nullableText('Why it FAILED'),
    result: nullableResult,
  },
  { $id: 'Simulation', description: 'A policy, tried on recorded tool calls' },
)
export type Simulation = Static<typeof Simulation>

export const SimulationPage = Type.Object({ items: Type.Array(Simulation), nextCursor }, { $id: 'SimulationPage' })

export const NewSimulation = Type.Object(
  {
    condition: Condition,
    action: PolicyAction,
    severity: Type.Optional(
      Type.Enum(Severity.enum, {
        default: 'MEDIUM',
        description: 'With HIGH and CRITICAL a failure counts as a match',
      }),
    ),
    days: Type.Integer({ minimum: 1, maximum: LIMITS.simulationDaysMax, description: 'How far back to look' }),
  },
  {
    $id: 'NewSimulation',
    additionalProperties: false,
    examples: [{ condition: 'tool.name == "refund"', action: 'REQUIRE_APPROVAL', severity: 'HIGH', days: 7 }],
  },
)
export type NewSimulation = Static<typeof NewSimulation>

export const SimulationParams = Type.Object({
  environmentId: uuid('Environment id'),
  simulationId: text(36, 'Simulation id'),
})
